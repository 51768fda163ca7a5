"""`repair.fixes.squeezed_axes`: packed rows, squeezed as if they were one image."""

import pytest
import torch

from transformers_exporters import OnnxConfig, OnnxExporter, OpenVINOConfig, OpenVINOExporter

ID = "repair.fixes.squeezed_axes"


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


class Unnamed(torch.nn.Module):
    def forward(self, x):
        """x float [1, n, 1, 4] -> float [n - 1, 4]."""
        return x.squeeze()[1:]


def test_unnamed_axes():
    exported = OpenVINOExporter().export_model(Unnamed(), {"x": torch.randn(1, 3, 1, 4)}, OpenVINOConfig(dynamic=True))
    x = torch.randn(1, 5, 1, 4)
    torch.testing.assert_close(exported(x=x), Unnamed()(x))
