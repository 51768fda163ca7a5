"""Weights reach the program file from where they are."""

from __future__ import annotations

import copy
import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from transformers_exporters import ExecutorchConfig, ExecutorchExporter, ExportedModel
from transformers_exporters.artifact.weights import read_safetensors_index
from transformers_exporters.backends.executorch import weight_bytes as room
from transformers_exporters.backends.executorch.weight_bytes import WeightBytes, weight_bytes
from transformers_exporters.prepare.checkpoint import load_checkpoint
from transformers_exporters.prepare.references import mapped, remember


def check(data: WeightBytes, expected: bytes) -> None:
    written = io.BytesIO()
    data.write_to_file(written)
    assert written.getvalue() == data.to_bytes() == expected
    assert data.sha256() == hashlib.sha256(expected).digest()
    assert data.prefix(32) == expected[:32]
    assert len(data) == len(expected)
    assert copy.deepcopy(data) is data


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_tensor_in_memory(dtype: torch.dtype) -> None:
    tensor = torch.arange(2048).to(dtype).reshape(32, 64)
    data = weight_bytes(tensor)
    assert data is not None
    check(data, tensor.view(torch.uint8).numpy().tobytes())


def test_a_tensor_in_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import save_file

    tensors = {"a": torch.randn(30, 50), "b": torch.randn(7, 401)}
    save_file(tensors, tmp_path / "model.safetensors")
    monkeypatch.setattr(room, "_CHUNK", 1000)
    for name, reference in read_safetensors_index(tmp_path / "model.safetensors").items():
        tensor = mapped(reference)
        remember(tensor, reference)
        data = weight_bytes(tensor)
        assert data is not None
        check(data, tensors[name].numpy().tobytes())


def test_small_tensors_and_views_are_copied() -> None:
    assert weight_bytes(torch.ones(8)) is None
    assert weight_bytes(torch.ones(2000, 2).T) is None
    assert weight_bytes(torch.ones(2, 2000)[1]) is None


def test_no_large_weight_is_copied_on_the_way_from_a_checkpoint_to_the_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=900, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96
    )
    BertModel(config).save_pretrained(tmp_path / "checkpoint")
    model = load_checkpoint(tmp_path / "checkpoint")
    ids = torch.randint(0, 900, (2, 7))
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    exported = ExecutorchExporter().export_model(model, inputs, config=ExecutorchConfig(dynamic=True))
    pieces = exported["model"].program._pte_data._buffers
    large = {tuple(p.shape) for p in model.parameters() if p.nbytes >= room.SMALLEST}
    by_reference = [piece for piece in pieces if isinstance(piece, WeightBytes)]
    assert {tuple(piece._tensor.shape) for piece in by_reference} >= large - {(512, 64)}
    assert all(piece._reference is not None for piece in by_reference if tuple(piece._tensor.shape) in large)
    exported.save_pretrained(tmp_path / "artifact")
    reloaded = ExportedModel.from_pretrained(tmp_path / "artifact")
    with torch.no_grad():
        expected = model(**inputs).last_hidden_state
    got = reloaded["model"](**inputs)
    torch.testing.assert_close(got.last_hidden_state, expected, atol=1e-5, rtol=0)
