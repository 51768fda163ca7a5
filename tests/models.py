"""Tiny random-weight models for the tests: built from configs, seed 0, eval mode, no files and no network."""

from typing import Any

import torch
import transformers

DECODER = {
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

# name -> (model class, fields beyond or instead of DECODER; None removes one)
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
    return cls(cls.config_class(**{**DECODER, **own, **fields})).eval()


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


def t5() -> Any:
    """A T5 with two layers on both sides."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def whisper() -> Any:
    """A Whisper that takes features of 100 frames: float32 [batch, 16, 100]."""
    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        vocab_size=128,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=50,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return transformers.WhisperForConditionalGeneration(config).eval()


def llava() -> Any:
    """A LLaVA over a CLIP tower (images of 8 x 8 in patches of 2) and a Llama; token 5 stands for one of 16 patches."""
    torch.manual_seed(0)
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=8, patch_size=2
    )
    text = transformers.LlamaConfig(**DECODER)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=5, image_token_id=5)
    model = transformers.LlavaForConditionalGeneration(config).eval()
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, 2
    return model
