"""`repair.fixes.squeeze_of_nothing`: packed rows, squeezed as if they were one image."""

import pytest
import torch

from transformers_exporters import OnnxConfig, OnnxExporter

ID = "repair.fixes.squeeze_of_nothing"


class Packed(torch.nn.Module):
    def forward(self, x):
        """x float [n, 4] -> float [n, 4]."""
        return x.squeeze(0) * 2 + x.squeeze((0, 1))


def exported(**fields):
    return OnnxExporter().export_model(Packed(), {"x": torch.randn(3, 4)}, OnnxConfig(dynamic=True, **fields))


@pytest.mark.xfail(strict=True, reason="ONNX Runtime refuses to squeeze an axis of size 5")
def test_needed():
    exported(disabled_workarounds=(ID,))(x=torch.randn(5, 4))


def test_works():
    x = torch.randn(5, 4)
    torch.testing.assert_close(exported()(x=x), Packed()(x))
