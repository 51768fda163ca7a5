from __future__ import annotations

import types

import pytest
import torch
from transformers.models.internvl import modeling_internvl

ID = "trace.patches.python.dtype_int"


def counted(x):
    size = (int(x.shape[1] * 0.5),)
    return (
        torch.ones(size, dtype=int),
        torch.zeros(3, dtype=int),
        torch.full(size, 2, dtype=int),
        torch.arange(4, dtype=int),
        torch.zeros_like(x, dtype=float).long(),
    )


class Counted(torch.nn.Module):
    """`int` as a function of a modelling module sees it."""

    def forward(self, x):
        created = types.FunctionType(counted.__code__, vars(modeling_internvl))(x)
        assert all(tensor.dtype == torch.int64 for tensor in created)
        return created


def inputs(length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.zeros(2, length)}


@pytest.mark.xfail(strict=True, raises=TypeError, reason="torch does not know what stands for int")
def test_needed(runs_like):
    runs_like(Counted(), inputs(8), [], without=[ID])


def test_works(runs_like):
    runs_like(Counted(), inputs(8), [inputs(9), inputs(20)])
