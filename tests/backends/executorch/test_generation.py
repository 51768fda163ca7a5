"""Components of a generating model: one file, one copy of the weights; a static cache in the caller's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from transformers_exporters import ExecutorchConfig, ExecutorchExporter, ExportedModel
from transformers_exporters.errors import InputError


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=3000,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        max_position_embeddings=128,
    )
    return LlamaForCausalLM(config).eval()


def prompt(length: int = 5) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 3000, (2, length), generator=torch.Generator().manual_seed(length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@pytest.mark.slow
def test_prefill_and_decode_share_their_weights(tmp_path: Path) -> None:
    model = llama()
    ExecutorchExporter().export_model(
        model, prompt(), config=ExecutorchConfig(dynamic=True), for_generation=True
    ).save_pretrained(tmp_path / "artifact")
    weights = sum(parameter.numel() * 4 for parameter in model.parameters())
    assert (tmp_path / "artifact" / "model.pte").stat().st_size < 1.03 * weights + 100_000
    loaded = ExportedModel.from_pretrained(tmp_path / "artifact")
    for length in (5, 8):
        got = loaded.generate(**prompt(length), max_new_tokens=6, do_sample=False)
        with torch.no_grad():
            expected = model.generate(**prompt(length), max_new_tokens=6, do_sample=False)
        assert got.tolist() == expected.tolist()


def exported_static(model: LlamaForCausalLM, directory: Path, planned: bool, **options: Any) -> ExportedModel:
    """Reloaded, with a cache of 100 positions; `planned` is the value of the three flags."""
    flags = dict.fromkeys(("alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers"), planned)
    ExecutorchExporter().export_model(
        model,
        prompt(),
        config=ExecutorchConfig(dynamic=True, **flags),
        for_generation=True,
        generation_config=GenerationConfig(cache_implementation="static", max_cache_len=100),
        multi_token_decode=True,
        **options,
    ).save_pretrained(directory)
    return ExportedModel.from_pretrained(directory)


def check_greedy(model: LlamaForCausalLM, loaded: ExportedModel, length: int) -> None:
    got = loaded.generate(**prompt(length), max_new_tokens=6, do_sample=False)
    with torch.no_grad():
        expected = model.generate(**prompt(length), max_new_tokens=6, do_sample=False)
    assert got.tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("planned", [True, False])
def test_a_static_cache_serves_different_prompts_from_one_loaded_method(tmp_path: Path, planned: bool) -> None:
    """P6: with the flags off, a second prompt used to start from the first one's cache and position.

    P7: prompts past 64 tokens used to be refused, and a cache got another size than the one that was asked for.
    """
    model = llama()
    loaded = exported_static(model, tmp_path / "artifact", planned)
    for length in (5, 8, 70, 94, 5):
        check_greedy(model, loaded, length)
    options = {"max_new_tokens": 2, "do_sample": False, "return_dict_in_generate": True}
    cache = loaded.generate(**prompt(5), **options).past_key_values
    assert cache.layers[0].keys.shape == (2, 2, 100, 8)
    # Past the stated bound, the axis is named.
    axes = loaded["decode"].spec.axes
    with pytest.raises(InputError, match="batch"):
        too_many = {name: value.repeat(axes["batch"].maximum, 1) for name, value in prompt(5).items()}
        loaded.generate(**too_many, max_new_tokens=2, do_sample=False)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bit_models_generate(tmp_path: Path, dtype: torch.dtype) -> None:
    """F8, F9: a program in half precision loads and runs, and the delegate has a share of it."""
    model = llama().to(dtype)
    exported = ExecutorchExporter().export_model(
        model, prompt(), config=ExecutorchConfig(dynamic=True), for_generation=True
    )
    assert all(exported.manifest.notes[name]["delegated"] > 0 for name in ("prefill", "decode"))
    exported.save_pretrained(tmp_path / "artifact")
    loaded = ExportedModel.from_pretrained(tmp_path / "artifact")
    check_greedy(model, loaded, 9)
