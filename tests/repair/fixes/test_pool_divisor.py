"""`repair.fixes.pool_divisor`: sums over windows by way of `divisor_override=1`."""

import pytest
import torch
import torch.nn.functional as F

import transformers_exporters as te

FIX = "repair.fixes.pool_divisor"


class Sums(torch.nn.Module):
    def forward(self, image):
        """image float32 [b, c, h, w]."""
        return F.avg_pool2d(image, (3, 2), 2, divisor_override=1), F.avg_pool2d(image, 3, 1, 1, divisor_override=4)


def error(format, **fields):
    exporter = te.AutoHfExporter.from_config({"export_format": format, "dynamic": True, **fields})
    exported = exporter.export_model(Sums(), {"image": torch.randn(2, 3, 8, 9)})
    image = torch.randn(1, 3, 7, 12)
    return max((a - b).abs().max().item() for a, b in zip(exported(image=image), Sums()(image), strict=True))


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the divisor is left out")
def test_needed():
    assert error("onnx", disabled_workarounds=(FIX,)) < 1e-5


@pytest.mark.parametrize("format", ["onnx", "openvino", "executorch"])
def test_works(format):
    assert error(format) < 1e-5
