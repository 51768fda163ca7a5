"""Tiny random-weight models for the tests: built from configs, seed 0, eval mode, no files and no network."""

from typing import Any

import torch
import transformers

_BASE = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

# name -> (model class, fields beyond or instead of _BASE; None removes one)
_DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {}),
    "qwen3": ("Qwen3ForCausalLM", {"head_dim": 32}),
    "mistral": ("MistralForCausalLM", {"sliding_window": 8}),
    "gemma3": (
        "Gemma3ForCausalLM",
        {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "sliding_window": 8,
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        },
    ),
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "phi3_longrope": (
        "Phi3ForCausalLM",
        {
            "max_position_embeddings": 128,
            "original_max_position_embeddings": 32,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0] * 8,
                "long_factor": [4.0] * 8,
                "original_max_position_embeddings": 32,
                "factor": 4.0,
            },
        },
    ),
    "lfm2": ("Lfm2ForCausalLM", {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3}),
    "smollm3": ("SmolLM3ForCausalLM", {"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]}),
}


def decoder(name: str, **fields: Any) -> Any:
    """A decoder-only model of the table, with fields changed."""
    class_name, own = _DECODERS[name]
    cls = getattr(transformers, class_name)
    torch.manual_seed(0)
    return cls(cls.config_class(**{**_BASE, **own, **fields})).eval()


def bert(**fields: Any) -> Any:
    """A BERT encoder of two layers."""
    own = {
        "vocab_size": 128,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }
    torch.manual_seed(0)
    return transformers.BertModel(transformers.BertConfig(**{**own, **fields})).eval()


def dinov2() -> Any:
    """A DINOv2 whose native image size is 56 x 56, with patches of 14."""
    torch.manual_seed(0)
    config = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=56, patch_size=14
    )
    return transformers.Dinov2Model(config).eval()


def mamba() -> Any:
    """A Mamba language model of two layers."""
    torch.manual_seed(0)
    config = transformers.MambaConfig(
        vocab_size=128, hidden_size=32, state_size=8, num_hidden_layers=2, conv_kernel=4, expand=2
    )
    return transformers.MambaForCausalLM(config).eval()


def gpt2() -> Any:
    """A GPT-2: learned absolute positions, so that a wrong position shows in the logits."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=128, n_positions=128, n_embd=32, n_layer=2, n_head=4)
    config.pad_token_id, config.bos_token_id, config.eos_token_id = 0, 1, 2
    return transformers.GPT2LMHeadModel(config).eval()


def ids(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    """Random token ids that are neither padding nor an end: int64 [batch, length]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 120, (batch, length), generator=generator)


def left_padded(batch: int, length: int, pads: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Token ids with the given number of pad tokens on the left of each row, and their mask."""
    tokens = ids(batch, length)
    mask = torch.ones_like(tokens)
    for row, count in enumerate(pads):
        tokens[row, :count] = 0
        mask[row, :count] = 0
    return {"input_ids": tokens, "attention_mask": mask}
