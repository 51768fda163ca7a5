"""`backends.onnx.fixes.number_minus_tensor`: the mask of whole numbers as what is added to the scores."""

import pytest
import torch

import transformers_exporters as te

FIX = "backends.onnx.fixes.number_minus_tensor"


class Masked(torch.nn.Module):
    def forward(self, scores, mask):
        """scores float32 [batch, length], mask int64 [batch, length]."""
        return scores + (1.0 - mask) * -10000.0


def error(**fields):
    model = Masked().eval()
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    exported = te.OnnxExporter().export_model(
        model, {"scores": torch.randn(2, 3), "mask": mask}, te.OnnxConfig(dynamic=True, **fields)
    )
    inputs = {"scores": torch.randn(3, 5), "mask": torch.tensor([[1, 1, 0, 0, 1]] * 3)}
    return (exported(**inputs) - model(**inputs)).abs().max().item()


@pytest.mark.xfail(strict=True, raises=te.LoweringError, reason="torch.onnx promotes the mask of a number less a mask")
def test_needed():
    assert error(disabled_workarounds=(FIX,)) < 1e-5


def test_works():
    assert error() < 1e-5
