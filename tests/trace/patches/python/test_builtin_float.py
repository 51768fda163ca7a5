from __future__ import annotations

import types

import pytest
import torch
from transformers.models.internvl import modeling_internvl

ID = "trace.patches.python.builtin_float"


def scaled(x):
    assert isinstance(0.5, float)
    assert not isinstance(1, float)
    assert float("1.5") == 1.5
    length = x.shape[1]
    return x * float(length), x / float(length) ** 0.5, x * float(x.max()), torch.zeros(2, dtype=float)


class Scaled(torch.nn.Module):
    """`float` as a function of a modelling module sees it."""

    def forward(self, x):
        return types.FunctionType(scaled.__code__, vars(modeling_internvl))(x)


def inputs(rows: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(rows, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, reason="the traced size is baked in")
def test_needed(runs_like):
    runs_like(Scaled(), inputs(2, 12), [inputs(3, 10)], without=[ID])


def test_works(runs_like):
    runs_like(Scaled(), inputs(2, 12), [inputs(3, 10), inputs(1, 1)])
    assert "float" not in vars(modeling_internvl), "the module is as it was"
