"""`backends.onnx.fixes.constant_outputs`: a model that returns numbers beside tensors."""

import pytest
import torch

from transformers_exporters import ExportedModel, LoweringError, OnnxConfig, OnnxExporter


class Layers(torch.nn.Module):
    def forward(self, x):
        """x float [n] -> features with the number of their layer."""
        return {"features": [(3, x * 2), (7, x + 1)], "count": 2}


def exported(**fields):
    return OnnxExporter().export_model(Layers(), {"x": torch.randn(4)}, OnnxConfig(dynamic=True, **fields))


def test_needed():
    with pytest.raises(LoweringError, match="no attribute 'name'"):
        exported(disabled_workarounds=("backends.onnx.fixes.constant_outputs",))


def test_works(tmp_path):
    exported().save_pretrained(tmp_path / "layers")
    x = torch.randn(6)
    got, wanted = ExportedModel.from_pretrained(tmp_path / "layers")(x=x), Layers()(x)
    assert got["count"] == 2
    assert [layer for layer, _ in got["features"]] == [3, 7]
    for (_, tensor), (_, expected) in zip(got["features"], wanted["features"], strict=True):
        torch.testing.assert_close(tensor, expected)
