"""`repair.fixes.one_dtype_in_stack`: sizes of int32 beside sizes of int64."""

import pytest
import torch

from transformers_exporters import ArtifactError, OnnxConfig, OnnxExporter


class Stacked(torch.nn.Module):
    def forward(self, x, y):
        """x int32 [n], y int64 [n] -> int64 [n, 2]."""
        return torch.stack([x, y], dim=-1)


def inputs(n):
    return {"x": torch.arange(n, dtype=torch.int32), "y": torch.arange(n) * 2}


def exported(**fields):
    return OnnxExporter().export_model(Stacked(), inputs(4), OnnxConfig(dynamic=True, **fields))


def test_needed():
    with pytest.raises(ArtifactError, match="different types"):
        exported(disabled_workarounds=("repair.fixes.one_dtype_in_stack",))(**inputs(3))


def test_works():
    torch.testing.assert_close(exported()(**inputs(7)), Stacked()(**inputs(7)))
