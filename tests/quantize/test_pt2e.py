"""torchao's PT2E quantizers on the traced graph, for every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("torchao")

import transformers_exporters as ours
from transformers_exporters.errors import ConfigError
from transformers_exporters.quantize.pt2e import PT2EQuantizer

FORMATS = {"dynamo": "Dynamo", "onnx": "Onnx", "openvino": "OpenVINO", "executorch": "Executorch"}
ENGINES = {"onnx": "onnxruntime", "openvino": "openvino", "executorch": "executorch"}


class Network(nn.Module):
    """Two layers and a table of positions, which must stay whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)
        self.positions = nn.Embedding(66, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1]) + 2
        return self.down(torch.relu(self.up(x + self.positions(places))))


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 32, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.norm(self.first(x)))).mean((2, 3))


def rows(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, length, 64, generator=torch.Generator().manual_seed(length))}


def export(fmt: str, model: nn.Module, inputs: Any, quantizer: Any, directory: Path) -> ours.ExportedModel:
    if fmt in ENGINES:
        pytest.importorskip(ENGINES[fmt])
    exporter, config = getattr(ours, f"{FORMATS[fmt]}Exporter"), getattr(ours, f"{FORMATS[fmt]}Config")
    made = exporter().export_model(model, inputs, config=config(dynamic=True, quantizer=quantizer))
    made.save_pretrained(directory)
    return ours.ExportedModel.from_pretrained(directory, **({"trust_remote_code": True} if fmt == "dynamo" else {}))


def cosine(left: torch.Tensor, right: torch.Tensor) -> float:
    return torch.nn.functional.cosine_similarity(left.flatten(), right.flatten(), 0).item()


@pytest.mark.parametrize("fmt", FORMATS)
def test_8_bits_with_measured_ranges(fmt: str, tmp_path: Path) -> None:
    model = Network().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    data = [rows(2, length) for length in (4, 7, 9)]
    loaded = export(fmt, model, rows(1, 5), PT2EQuantizer(calibration_dataset=data), tmp_path / "a")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    for batch, length in ((1, 5), (3, 11), (2, 1)):
        with torch.no_grad():
            expected = model(**rows(batch, length))
        assert cosine(loaded(**rows(batch, length)), expected) > 0.998
    floats = sum(parameter.numel() for parameter in (*model.up.parameters(), *model.down.parameters())) * 4
    stored = sum(path.stat().st_size for path in (tmp_path / "a").iterdir())
    assert stored < (1.0 if fmt == "dynamo" else 0.75) * floats  # graphs, and a `.pt2`'s code, count too


@pytest.mark.parametrize("fmt", ["onnx", "executorch"])
def test_convolutions(fmt: str, tmp_path: Path) -> None:
    model, data = Pictures().eval(), [{"x": torch.randn(2, 3, 12, 12)} for _ in range(3)]
    loaded = export(fmt, model, data[0], PT2EQuantizer(calibration_dataset=data), tmp_path / "a")
    x = torch.randn(3, 3, 12, 12)
    with torch.no_grad():
        assert cosine(loaded(x=x), model(x)) > 0.99


def test_a_quantizer_of_the_callers(tmp_path: Path) -> None:
    pytest.importorskip("executorch")
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    own = XNNPACKQuantizer().set_module_type(nn.Linear, get_symmetric_quantization_config(is_per_channel=True))
    model = Network().eval()
    with pytest.warns(UserWarning, match="calibration_dataset"):
        loaded = export("dynamo", model, rows(2, 5), PT2EQuantizer(quantizer=own), tmp_path / "a")
    with torch.no_grad():
        assert cosine(loaded(**rows(2, 5)), model(**rows(2, 5))) > 0.99


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="takes a torchao PT2E quantizer"):
        PT2EQuantizer(quantizer="int8")
