"""`backends.onnx.fixes.conv3d_without_bias`: patches of a video."""

import pytest
import torch

import transformers_exporters as te

FIX = "backends.onnx.fixes.conv3d_without_bias"


class Patches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.proj = torch.nn.Conv3d(3, 8, kernel_size=(2, 4, 4), stride=(2, 4, 4), bias=False)

    def forward(self, patches):
        """patches float32 [n, 3, 2, 4, 4]."""
        return self.proj(patches).flatten(1)


def error(**fields):
    model = Patches().eval()
    exported = te.OnnxExporter().export_model(
        model, {"patches": torch.randn(4, 3, 2, 4, 4)}, te.OnnxConfig(dynamic=True, **fields)
    )
    patches = torch.randn(9, 3, 2, 4, 4)
    return (exported(patches=patches) - model(patches)).abs().max().item()


@pytest.mark.xfail(strict=True, reason="the made-up bias has two axes")
def test_needed():
    assert error(disabled_workarounds=(FIX,)) < 1e-5


def test_works():
    assert error() < 1e-5
