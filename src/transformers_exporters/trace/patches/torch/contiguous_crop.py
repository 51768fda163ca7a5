"""`x.contiguous()` of a tensor that is contiguous at the traced sizes only: the copy stays in the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import SymInt, Tensor
from torch.utils._sympy.functions import Max

from ....workarounds import Workaround


def contiguous(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def copied(self: Tensor, memory_format: torch.memory_format = torch.contiguous_format) -> Tensor:
        if memory_format is not torch.contiguous_format or _always_contiguous(self):
            return original(self, memory_format=memory_format)
        return self.clone(memory_format=memory_format)

    return copied


def _always_contiguous(x: Tensor) -> bool:
    """Whether the tensor is contiguous for every size of its dynamic axes, or has none.

    Decided from the expressions alone: torch compares the strides when a slice is made, and from then on takes for known
    what holds at the traced sizes.
    """
    if not any(isinstance(size, SymInt) for size in x.shape):
        return True
    expected: Any = sympy.Integer(1)
    for size, stride in zip(reversed(x.shape), reversed(x.stride()), strict=True):
        if sympy.expand(_expression(stride) - expected) != 0:
            return False
        expected = expected * _expression(size)
    return True


def _expression(size: Any) -> sympy.Expr:
    """A size as an expression; the `Max(1, size)` of strides is for empty tensors."""
    expression = size.node.expr if isinstance(size, SymInt) else sympy.Integer(size)
    return expression.replace(
        lambda part: isinstance(part, Max) and sympy.S.One in part.args,
        lambda part: Max(*(argument for argument in part.args if argument != 1)),
    )


WORKAROUND = Workaround(
    reason="A crop that keeps everything at the traced sizes makes the trace drop the `.contiguous()` behind it, and the "
    "`view` behind that fails at other sizes (window attention, cropped convolutions).",
    upstream="none: no issue is known to us",
    targets=("torch:Tensor.contiguous",),
    apply=contiguous,
)
