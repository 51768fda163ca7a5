"""`backends.onnx.translations.floor_of_quotient`: how many blocks a length fills."""

import pytest
import torch

import transformers_exporters as te
from transformers_exporters.backends.onnx import lower


class Blocks(torch.nn.Module):
    def forward(self, x):
        """x float32 [batch, length]: a place for each block of eight, and a sum."""
        blocks = -(-x.shape[1] // 8)
        return x.new_zeros(blocks + 1, x.shape[0]), x.sum() + blocks + (3 - x.shape[1]) // 2


def errors():
    exported = te.OnnxExporter().export_model(Blocks(), {"x": torch.randn(2, 7)}, te.OnnxConfig(dynamic=True))
    for sizes in ((1, 1), (3, 8), (2, 9), (2, 25)):
        x = torch.randn(*sizes)
        for got, wanted in zip(exported(x=x), Blocks()(x), strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="onnxscript's `//` cuts towards zero")
def test_needed(monkeypatch):
    monkeypatch.setattr(lower, "translation_table", dict)
    errors()


def test_works():
    errors()
