from __future__ import annotations

import pytest
import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import DimConstraints
from torch.utils._sympy.functions import FloorDiv

from transformers_exporters.trace.patches.torch.unasked_constraints import WORKAROUND
from transformers_exporters.workarounds import Patching


def constraints(*, named: bool) -> DimConstraints:
    """What torch is left with of SAM 2's windows and strides."""
    size = sympy.Symbol("h", integer=True, positive=True)
    found = DimConstraints({size: [ConstantSource("h")]}, {size: 64}, {size} if named else set(), {})
    found._univariate_inequalities[size].add(sympy.Eq(size / 16, 2 * FloorDiv(size / 4, 8)))
    found._symbols_with_equalities.add(size)
    return found


@pytest.mark.xfail(strict=True, raises=NotImplementedError, reason="sympy has no solver for it")
def test_needed():
    constraints(named=False).solve()


def test_works():
    with Patching((WORKAROUND,)) as patching:
        constraints(named=False).solve()
        assert patching.fired
        with pytest.raises(NotImplementedError):
            constraints(named=True).solve()


class Halves(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0] // 2, 2).sum(1)


def test_named_axes_are_still_held_to_what_the_model_takes(runs_like):
    runs_like(Halves(), {"x": torch.randn(6)}, [{"x": torch.randn(10)}])
    with Patching((WORKAROUND,)), pytest.raises(Exception, match="Constraints violated"):
        torch.export.export(Halves(), (torch.randn(6),), dynamic_shapes=({0: Dim("size", min=2)},))
