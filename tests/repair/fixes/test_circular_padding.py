"""`repair.fixes.circular_padding`: a convolution around a globe, and amounts below 0."""

import pytest
import torch
import torch.nn.functional as F

import transformers_exporters as te

FIX = "repair.fixes.circular_padding"


class Around(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convolution = torch.nn.Conv2d(3, 2, 3, padding=1, padding_mode="circular")

    def forward(self, image):
        """image float32 [b, 3, h, w]."""
        return self.convolution(image), F.pad(image, (2, -1, 0, 3), "circular"), F.pad(image[0], (-1, 2), "circular")


def export(format, **fields):
    exporter = te.AutoHfExporter.from_config({"export_format": format, "dynamic": True, **fields})
    return exporter.export_model(Around().eval(), {"image": torch.randn(2, 3, 6, 7)})


@pytest.mark.xfail(strict=True, raises=te.LoweringError, reason="no circular padding")
def test_needed():
    export("openvino", disabled_workarounds=(FIX,))


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_works(format):
    exported = export(format)
    for size in ((2, 3, 6, 7), (1, 3, 9, 4), (3, 3, 4, 12)):
        image = torch.randn(*size)
        torch.testing.assert_close(exported(image=image), Around()(image), atol=1e-5, rtol=1e-4)
