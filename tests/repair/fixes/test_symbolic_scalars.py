"""`repair.fixes.symbolic_scalars`: arithmetic of tensors with numbers that are computed from sizes."""

import pytest
import torch

import transformers_exporters as te

FIX = "repair.fixes.symbolic_scalars"


class Scaled(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 4]."""
        half = torch.ops.aten.mul.Scalar(x, x.shape[0] * 0.5)
        return half, torch.remainder(torch.arange(9), x.shape[0]), torch.ops.aten.masked_fill.Scalar(x, x > 0, 2)


class Stretched(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 4]: places times a ratio of sizes (relative positions of DeepSeek-OCR 2)."""
        return torch.arange(5)[:, None] * (x.shape[0] / 4), x.sum()


def test_places_times_a_ratio():
    exported = te.OnnxExporter().export_model(Stretched(), {"x": torch.randn(3, 4)}, te.OnnxConfig(dynamic=True))
    for n in (1, 3, 8):
        x = torch.randn(n, 4)
        for got, wanted in zip(exported(x=x), Stretched()(x), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-5)


def export(**fields):
    return te.OnnxExporter().export_model(Scaled(), {"x": torch.randn(3, 4)}, te.OnnxConfig(dynamic=True, **fields))


@pytest.mark.xfail(strict=True, raises=te.LoweringError, reason="the translations take Python numbers")
def test_needed():
    export(disabled_workarounds=(FIX,))


def test_works():
    exported = export()
    for n in (1, 3, 8):
        x = torch.randn(n, 4)
        for got, wanted in zip(exported(x=x), Scaled()(x), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-6)
