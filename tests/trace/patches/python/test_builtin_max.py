from __future__ import annotations

import types

import pytest
import torch
from transformers.models.ibert import quant_modules

ID = "trace.patches.python.builtin_max"


def bounds(x):
    low, high = x.min().expand(1).abs(), x.max().expand(1).abs()
    return max(low, high), min(x.min(), x.max(), x.sum()), max(3, 5), max([1, 2]), min((4, 7), key=lambda n: -n)


class Bounds(torch.nn.Module):
    """`max` as a function of a modelling module sees it."""

    def forward(self, x):
        larger, smallest, *numbers = types.FunctionType(bounds.__code__, vars(quant_modules))(x)
        return larger + sum(numbers), smallest


def inputs(*values: float) -> dict[str, torch.Tensor]:
    return {"x": torch.tensor(values)}


@pytest.mark.xfail(strict=True, reason="asks which is larger")
def test_needed(runs_like):
    runs_like(Bounds(), inputs(1, 2, 3), [inputs(5, 4, -9)], without=[ID])


def test_works(runs_like):
    runs_like(Bounds(), inputs(1, 2, 3), [inputs(5, 4, -9), inputs(-1, -2), inputs(7, 7, 7, 7)])
    assert "max" not in vars(quant_modules), "the module is as it was"


def best(x):
    kept = x.topk(min(6, x.shape[1]), dim=1).values
    return kept, x.new_zeros(max(x.shape[0], 3), min(x.shape[1], x.shape[0] + 1, 9)), max(x.shape[1], 0) * kept.sum()


class Best(torch.nn.Module):
    """`min(6, length)` as a function of a modelling module sees it."""

    def forward(self, x):
        return types.FunctionType(best.__code__, vars(quant_modules))(x)


SHORT, LONG = {"x": torch.randn(2, 4)}, {"x": torch.randn(5, 13)}


@pytest.mark.xfail(strict=True, reason="of three sizes, the one that is shortest in the sample stays the shortest")
def test_three_sizes_needed(runs_like):
    runs_like(Best(), LONG, [{"x": torch.randn(12, 5)}], without=[ID])


def test_sizes(runs_like):
    runs_like(Best(), SHORT, [LONG, {"x": torch.randn(2, 6)}, {"x": torch.randn(1, 1)}])
    runs_like(Best(), LONG, [SHORT, {"x": torch.randn(12, 5)}])
