from __future__ import annotations

import types

import pytest
import torch
from transformers.models.idefics3 import modeling_idefics3

ID = "trace.patches.python.shape_numel"


def filled(x):
    values = x.shape[1:].numel()
    return (x == 0).sum(dim=(1, 2, 3)) != values, x.flatten() / x.shape.numel(), x.new_zeros(x.shape)


class Filled(torch.nn.Module):
    """Which images are not empty, as a function of a modelling module asks it."""

    def forward(self, x):
        return types.FunctionType(filled.__code__, vars(modeling_idefics3))(x)


def inputs(*shape: int) -> dict[str, torch.Tensor]:
    x = torch.randn(shape)
    x[1] = 0
    return {"x": x}


@pytest.mark.xfail(strict=True, reason="the traced sizes are baked in")
def test_needed(runs_like):
    runs_like(Filled(), inputs(3, 3, 8, 6), [inputs(2, 3, 5, 7)], without=[ID])


def test_works(runs_like):
    runs_like(Filled(), inputs(3, 3, 8, 6), [inputs(2, 3, 5, 7), inputs(4, 3, 9, 2)])
