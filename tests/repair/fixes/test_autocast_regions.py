"""`repair.fixes.autocast_regions`: parts of a forward under another gradient mode, or without autocast."""

import pytest
import torch

import transformers_exporters as te

FIX = "repair.fixes.autocast_regions"


class Regions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        """x float32 [b, t, 4]: angles in float32 as rotary embeddings compute them, one region in another, two results."""
        with torch.autocast(device_type="cpu", enabled=False):
            angles = self.linear(x.float())
            with torch.enable_grad():
                sine, cosine = angles.sin(), angles.cos()
            squared = sine * sine
        with torch.enable_grad():
            mixed = x.flip(-1) > 0
        return torch.where(mixed, squared, cosine) + x


def error(format, **fields):
    torch.manual_seed(0)
    model = Regions().eval()
    exporter = te.AutoHfExporter.from_config({"export_format": format, "dynamic": True, **fields})
    exported = exporter.export_model(model, {"x": torch.randn(2, 5, 4)})
    x = torch.randn(3, 7, 4)
    return (exported(x=x) - model(x)).abs().max().item()


@pytest.mark.xfail(strict=True, raises=te.LoweringError, reason="the frontend has no rule for a region")
def test_needed():
    assert error("openvino", disabled_workarounds=(FIX,)) < 1e-5


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_works(format):
    assert error(format) < 1e-5
