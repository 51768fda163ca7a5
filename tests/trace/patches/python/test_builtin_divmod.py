"""`trace.patches.python.builtin_divmod`: whole blocks and what is left."""

from __future__ import annotations

import types

import pytest
import torch
from transformers.models.ibert import quant_modules

ID = "trace.patches.python.builtin_divmod"


def parts(x):
    blocks, rest = divmod(x.shape[1], 4)
    return x.new_zeros(blocks, rest), divmod(9, 4)[1] * x


class Parts(torch.nn.Module):
    """`divmod` as a function of a modelling module sees it."""

    def forward(self, x):
        return types.FunctionType(parts.__code__, vars(quant_modules))(x)


@pytest.mark.xfail(strict=True, raises=TypeError, reason="sizes have no divmod")
def test_needed(runs_like):
    runs_like(Parts(), {"x": torch.randn(2, 7)}, [], without=[ID])


def test_works(runs_like):
    runs_like(Parts(), {"x": torch.randn(2, 7)}, [{"x": torch.randn(3, n)} for n in (2, 4, 13)])
