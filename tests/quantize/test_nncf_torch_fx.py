"""NNCF's algorithms on the traced graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("nncf")
pytest.importorskip("torchao")

import transformers_exporters as ours
from test_pt2e import Network, cosine, export, rows
from transformers_exporters.errors import ConfigError
from transformers_exporters.quantize.nncf_torch_fx import NNCFTorchFXQuantizer


@pytest.mark.parametrize(("fmt", "model_type"), [("openvino", "transformer"), ("onnx", None), ("dynamo", None)])
def test_8_bits_with_nncf(fmt: str, model_type: Any, tmp_path: Path) -> None:
    model = Network().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    quantizer = NNCFTorchFXQuantizer(calibration_dataset=[rows(2, 5), rows(2, 8)], model_type=model_type)
    loaded = export(fmt, model, rows(1, 5), quantizer, tmp_path / "a")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    for batch, length in ((1, 5), (3, 11), (2, 1)):
        with torch.no_grad():
            expected = model(**rows(batch, length))
        assert cosine(loaded(**rows(batch, length)), expected) > 0.99


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="does not quantize the format 'executorch'"):
        ours.ExecutorchConfig(quantizer=NNCFTorchFXQuantizer())
    with pytest.raises(ConfigError, match="model_type"):
        NNCFTorchFXQuantizer(model_type="vision")
    with pytest.raises(ConfigError, match="takes a torchao PT2E quantizer"):
        NNCFTorchFXQuantizer(quantizer=3)
