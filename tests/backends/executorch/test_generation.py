"""Components of a generating model: one file, one copy of the weights; a static cache in the caller's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from transformers_exporters import ExecutorchConfig, ExecutorchExporter, ExportedModel


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
        max_position_embeddings=64,
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


@pytest.mark.slow
@pytest.mark.parametrize("planned", [True, False])
def test_a_static_cache_generates_twice_from_one_method(tmp_path: Path, planned: bool) -> None:
    model = llama()
    flags = dict.fromkeys(("alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers"), planned)
    generation = GenerationConfig(cache_implementation="static", max_cache_len=24)
    exported = ExecutorchExporter().export_model(
        model,
        prompt(),
        config=ExecutorchConfig(dynamic=True, **flags),
        for_generation=True,
        generation_config=generation,
        multi_token_decode=True,
    )
    exported.save_pretrained(tmp_path / "artifact")
    loaded = ExportedModel.from_pretrained(tmp_path / "artifact")
    for length in (5, 8):
        got = loaded.generate(**prompt(length), max_new_tokens=6, do_sample=False)
        with torch.no_grad():
            expected = model.generate(**prompt(length), max_new_tokens=6, do_sample=False)
        assert got.tolist() == expected.tolist()
