"""The largest value of a symbolic size.

Interval arithmetic takes every occurrence of a symbol for itself: `2*s*s // s` at s <= 1024 comes out as two million.
Relative positions (XLNet) are full of such sizes, and their arena came out as 275 GB. So where the interval's end and the
value at the bounds differ, the size is evaluated at many points instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from executorch.exir import sym_util
from executorch.exir.tensor import TensorSpec
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.utils._sympy.functions import FloorDiv, Max, Min
from torch.utils._sympy.symbol import SymT, symbol_is_type
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

#: Points tried for each symbol: the last ones below its bound (a size may depend on a remainder), its halves (a size may
#: shrink as another grows: `16 // (s // 16)`), and a few others.
_BELOW, _OTHERS = 9, (1, 2, 3)
#: Symbols in one size up to which every combination of points is tried.
_COMBINED = 2
#: The bound of a number that is data and has none: lowering itself may ask for a number anew.
_UNLIMITED = 1024
#: The largest value of each count, of the component that is being lowered.
_counts: ContextVar[Mapping[sympy.Symbol, sympy.Expr]] = ContextVar("counts", default=MappingProxyType({}))
#: What was found for sizes of that component.
_found: ContextVar[dict[sympy.Expr, int | None] | None] = ContextVar("found", default=None)


def largest_size(
    expression: sympy.Expr,
    ranges: Mapping[sympy.Symbol, ValueRanges[sympy.Expr]],
    counts: Mapping[sympy.Symbol, sympy.Expr] = MappingProxyType({}),
) -> int | None:
    """The largest value of a size, None where a symbol that is no data has no finite bound.

    Args:
        expression: The size.
        ranges: Of its symbols.
        counts: The largest value of a symbol in others: of the places of a mask, `u0 // batch` a row are at most a row's.
    """
    counted = {symbol: counts[symbol] for symbol in expression.free_symbols if symbol in counts}
    if counted and all(_grows(expression, symbol) for symbol in counted):
        known = [largest_size(expression, ranges), largest_size(expression.xreplace(counted), ranges)]
        return min((size for size in known if size is not None), default=None)
    if expression.is_Integer:
        return int(expression)
    symbols = sorted(expression.free_symbols, key=str)
    limited = {s for s in symbols if s in ranges and isinstance(ranges[s].upper, sympy.Integer)}
    data = {s for s in symbols if symbol_is_type(s, SymT.UNBACKED_INT)}
    ranges = {**ranges, **dict.fromkeys(data - limited, ValueRanges(0, _UNLIMITED))}
    upper = bound_sympy(expression, ranges).upper
    if not limited | data >= set(symbols):
        return int(upper) if isinstance(upper, sympy.Integer) else None
    bounds = [int(ranges[s].upper) for s in symbols]
    at_bounds = _value(expression, symbols, bounds)
    if isinstance(upper, sympy.Integer) and at_bounds == int(upper):
        return at_bounds
    points = [[0] * (s in data) + _points(bound) for s, bound in zip(symbols, bounds, strict=True)]
    if len(symbols) > _COMBINED:
        dividing = {s for each in expression.atoms(FloorDiv) for s in each.args[1].free_symbols}
        points = [
            sorted({p[0], *p[-2:], *((1,) if s in dividing else ())}) for s, p in zip(symbols, points, strict=True)
        ]
    values = [_value(expression, symbols, point) for point in itertools.product(*points)]
    return max(v for v in (at_bounds, *values) if v is not None)


def _grows(expression: sympy.Expr, symbol: sympy.Symbol) -> bool:
    """Whether an expression never gets smaller as one of its symbols, all of them sizes, gets larger."""
    if expression == symbol or not expression.has(symbol):
        return True
    if isinstance(expression, FloorDiv) and expression.args[1].has(symbol):
        return False
    if isinstance(expression, sympy.Mul) and any(each.is_number and each < 0 for each in expression.args):
        return False
    known = (sympy.Add, sympy.Mul, FloorDiv, Max, Min)
    return isinstance(expression, known) and all(_grows(each, symbol) for each in expression.args)


def _points(bound: int) -> list[int]:
    halves = {bound >> step for step in range(1, bound.bit_length())}
    return sorted({max(bound - i, 1) for i in range(_BELOW)} | {o for o in _OTHERS if o <= bound} | halves)


def upper_bound(size: int | torch.SymInt) -> int | None:
    """`largest_size` of a size of a traced tensor, at the bounds that its symbols have now."""
    if isinstance(size, int):
        return size
    expression, found = size.node.expr, _found.get()
    if found is None:
        return largest_size(expression, size.node.shape_env.var_to_range, _counts.get())
    if expression not in found:
        found[expression] = largest_size(expression, size.node.shape_env.var_to_range, _counts.get())
    return found[expression]


@contextmanager
def exact_upper_bounds(counts: Mapping[sympy.Symbol, sympy.Expr] = MappingProxyType({})) -> Iterator[None]:
    """While held, executorch asks `upper_bound` for the upper bound of a size, which knows what is counted.

    XNNPACK plans a delegate's memory for the shapes that were written into it: 67 GB for one attention of Qwen3-Next, whose
    chunk length is such a quotient.
    """
    original = sym_util.eval_upper_bound

    def eval_upper_bound(size: int | torch.SymInt) -> int:
        largest = upper_bound(size)
        return original(size) if largest is None else largest

    sym_util.eval_upper_bound = eval_upper_bound
    tokens = _counts.set(counts), _found.set({})
    try:
        yield
    finally:
        _counts.reset(tokens[0])
        _found.reset(tokens[1])
        sym_util.eval_upper_bound = original


def _value(expression: sympy.Expr, symbols: list[sympy.Symbol], point: Any) -> int | None:
    try:
        value = expression.xreplace(dict(zip(symbols, map(sympy.Integer, point), strict=True)))
    except (AssertionError, ZeroDivisionError):
        return None  # torch's functions refuse a point that the graph never reaches
    return int(value) if value.is_Integer else None


class UpperSizes(PassBase):
    """Gives every planned tensor its largest shape; takes the place of executorch's own pass of this kind."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Replace the symbols in the shapes and strides of all tensor specs."""
        for module in graph_module.modules():
            if isinstance(module, GraphModule):
                for node in module.graph.nodes:
                    for spec in pytree.tree_leaves(node.meta.get("spec", [])):
                        if isinstance(spec, TensorSpec):
                            spec.shape = [self._size(size) for size in spec.shape]
                            spec.stride = _row_major(spec)
        return PassResult(graph_module, True)

    def _size(self, size: Any) -> int:
        largest = upper_bound(size) if isinstance(size, torch.SymInt) else int(size)
        if largest is None:
            raise RuntimeError(f"the size {size} has no finite bound")
        return largest


def _row_major(spec: TensorSpec) -> list[int]:
    """Strides for the spec's order of axes."""
    strides = [1] * len(spec.shape)
    step = 1
    for axis in reversed([int(a) for a in spec.dim_order]):
        strides[axis] = step
        step *= max(spec.shape[axis], 1)
    return strides
