"""How a traced tensor lies in memory, and whether it takes any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from unittest import mock

import torch
from executorch.exir import tensor as specs
from executorch.exir import tensor_layout
from executorch.exir.emit import _emitter
from executorch.exir.passes import replace_view_copy_with_view_pass
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols
from torch.utils._sympy.value_ranges import bound_sympy

_ANY = 64


def is_row_major(value: torch.Tensor) -> bool:
    """Whether strides never grow from left to right. Axes of size 1 do not count; symbols count as traced.

    A size that is data counts as `_ANY`: its products with others are ordered as those of any number above 1.
    """
    strides = [
        _number(stride) if isinstance(stride, torch.SymInt) else stride
        for size, stride in zip(value.shape, value.stride(), strict=True)
        if not (isinstance(size, int) and size == 1)
    ]
    return all(left >= right for left, right in pairwise(strides))


def as_row_major(value: torch.Tensor) -> torch.Tensor:
    """The traced tensor itself if it is row-major, or one like it that is."""
    return value if is_row_major(value) else value.new_empty(value.shape)


@contextmanager
def orders_by_traced_strides() -> Iterator[None]:
    """While held, executorch orders the axes of a tensor by its strides as traced, which it would prove one by one.

    Strides that are data are row-major: no guard tells which of `64` and `64 * (u0 // u1)` is larger, and a join of HY-V4-VL's
    images was refused when it ran.
    """

    def dim_order_from_stride(stride: Sequence[int | torch.SymInt]) -> tuple[int, ...]:
        axes = range(len(stride))
        if any(map(has_free_unbacked_symbols, stride)):
            return tuple(axes)
        known = [_number(each) if isinstance(each, torch.SymInt) else each for each in stride]
        return tuple(sorted(axes, key=lambda axis: -known[axis]))

    with ExitStack() as stack:
        for module in (specs, tensor_layout, _emitter, replace_view_copy_with_view_pass):
            stack.enter_context(mock.patch.object(module, "dim_order_from_stride", dim_order_from_stride))
        yield


def is_never_empty(value: torch.Tensor) -> bool:
    """Whether no size can be 0. Only a size that is data can: the others count as traced."""
    for size in value.shape:
        if not isinstance(size, torch.SymInt):
            if size == 0:
                return False
        elif has_free_unbacked_symbols(size):
            least = bound_sympy(size.node.expr, size.node.shape_env.var_to_range).lower
            if not (least.is_number and least >= 1):
                return False
    return True


def _number(size: torch.SymInt) -> int:
    known = size.node.shape_env.backed_var_to_val
    expression = size.node.expr
    return int(expression.xreplace({symbol: known.get(symbol, _ANY) for symbol in expression.free_symbols}))
