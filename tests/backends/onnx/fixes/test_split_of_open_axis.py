"""`backends.onnx.fixes.split_of_open_axis`: pieces of a sequence of any length."""

import pytest
import torch

import transformers_exporters as te

FIX = "backends.onnx.fixes.split_of_open_axis"


class Pieces(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 4] -> halves and thirds in another order. Six times as long, so that the number of pieces is sure."""
        x = torch.cat([x, x, x, x, x, x])
        first, second = x.chunk(2)
        a, b, c = x.split(x.shape[0] // 3)
        return torch.cat([second, first]), torch.cat([c, a, b]) * 2


def error(**fields):
    model = Pieces().eval()
    shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    exported = te.OnnxExporter().export_model(
        model, {"x": torch.randn(8, 4)}, te.OnnxConfig(dynamic_shapes=shapes, **fields)
    )
    x = torch.randn(17, 4)
    return max((got - wanted).abs().max().item() for got, wanted in zip(exported(x=x), model(x), strict=True))


@pytest.mark.xfail(strict=True, raises=te.LoweringError, reason="folding constants fails on the sequence of pieces")
def test_needed():
    assert error(disabled_workarounds=(FIX,)) == 0


def test_works():
    assert error() == 0
