from __future__ import annotations

import types

import pytest
import torch
from transformers.models.internvl import modeling_internvl

ID = "trace.patches.python.builtin_list"


def listed(x):
    assert isinstance([1], list)
    assert not isinstance((1,), list)
    assert list(range(2)) == [0, 1]
    assert list("ab") == ["a", "b"]
    features = list(x * 2)
    assert isinstance(features, list)
    return features, torch.cat(features, dim=0)


class Listed(torch.nn.Module):
    """`list` as a function of a modelling module sees it."""

    def forward(self, x):
        return types.FunctionType(listed.__code__, vars(modeling_internvl))(x)


def inputs(size: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(size, 4, 3)}


@pytest.mark.xfail(strict=True, reason="the traced size is baked in")
def test_needed(runs_like):
    runs_like(Listed(), inputs(3), [inputs(2), inputs(5)], without=[ID])


def test_works(runs_like):
    runs_like(Listed(), inputs(3), [inputs(2), inputs(5)])
    assert "list" not in vars(modeling_internvl), "the module is as it was"
