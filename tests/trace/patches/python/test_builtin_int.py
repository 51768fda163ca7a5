from __future__ import annotations

import types

import pytest
import torch
from transformers.models.internvl import modeling_internvl

ID = "trace.patches.python.builtin_int"


def resized(x):
    height, width = x.shape[-2:]
    assert isinstance(3, int)
    assert not isinstance("3", int)
    assert int("7") == 7
    assert int(2.9) == 2
    return x.new_ones(int(height * 0.5), int(width / 3), int(height * 1.5), int(height))


class Resized(torch.nn.Module):
    """`int` as a function of a modelling module sees it."""

    def forward(self, x):
        return types.FunctionType(resized.__code__, vars(modeling_internvl))(x)


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.zeros(2, height, width)}


@pytest.mark.xfail(strict=True, reason="the traced size is baked in")
def test_needed(runs_like):
    runs_like(Resized(), inputs(8, 12), [inputs(16, 10)], without=[ID])


def test_works(runs_like):
    """Quotients that have a remainder too."""
    runs_like(Resized(), inputs(8, 12), [inputs(16, 10), inputs(7, 44)])
    assert "int" not in vars(modeling_internvl), "the module is as it was"


def counted(x, groups):
    return x.new_zeros(int(groups.max()) + 1, 4).index_add(0, groups, x)


class Counted(torch.nn.Module):
    def forward(self, x, groups):
        """x float [n, 4], groups int64 [n] -> the sums of the groups: as many rows as there are groups."""
        return types.FunctionType(counted.__code__, vars(modeling_internvl))(x, groups)


def groups(*numbers: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(len(numbers), 4), "groups": torch.tensor(numbers)}


def test_a_count_that_is_data_stays_open(runs_like):
    runs_like(Counted(), groups(0, 2, 1, 2, 0), [groups(0, 1, 1), groups(4, 3, 2, 1, 0, 0, 5)])
