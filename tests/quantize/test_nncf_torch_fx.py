"""NNCF's algorithms on the traced graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("nncf")
pytest.importorskip("torchao")

import transformers_exporters as ours
from transformers_exporters.errors import ConfigError
from transformers_exporters.quantize.nncf_torch_fx import NNCFTorchFXQuantizer

NAMES = {"dynamo": "Dynamo", "onnx": "Onnx", "openvino": "OpenVINO"}


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


def rows(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, length, 64, generator=torch.Generator().manual_seed(length))}


@pytest.mark.parametrize(("fmt", "model_type"), [("openvino", "transformer"), ("onnx", None), ("dynamo", None)])
def test_8_bits_with_nncf(fmt: str, model_type: Any, tmp_path: Path) -> None:
    model = Network().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    quantizer = NNCFTorchFXQuantizer(calibration_dataset=[rows(2, 5), rows(2, 8)], model_type=model_type)
    pytest.importorskip({"onnx": "onnxruntime"}.get(fmt, fmt if fmt != "dynamo" else "torch"))
    exporter, config = getattr(ours, f"{NAMES[fmt]}Exporter"), getattr(ours, f"{NAMES[fmt]}Config")
    made = exporter().export_model(model, rows(1, 5), config=config(dynamic=True, quantizer=quantizer))
    made.save_pretrained(tmp_path / "a")
    loaded = ours.ExportedModel.from_pretrained(
        tmp_path / "a", **({"trust_remote_code": True} if fmt == "dynamo" else {})
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    for batch, length in ((1, 5), (3, 11), (2, 1)):
        with torch.no_grad():
            expected = model(**rows(batch, length))
        got = loaded(**rows(batch, length))
        assert torch.nn.functional.cosine_similarity(got.flatten(), expected.flatten(), 0) > 0.98


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="does not quantize the format 'executorch'"):
        ours.ExecutorchConfig(quantizer=NNCFTorchFXQuantizer())
    with pytest.raises(ConfigError, match="model_type"):
        NNCFTorchFXQuantizer(model_type="vision")
    with pytest.raises(ConfigError, match="takes a torchao PT2E quantizer"):
        NNCFTorchFXQuantizer(quantizer=3)
