"""Dynamic axes on both sides of a trace: what is asked of `torch.export`, and what came out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import Dim, ExportedProgram
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from ..artifact.spec import AxisRange, Size
from ..prepare.axes import AxisNames, leaf_path, own_name
from ..prepare.record import Prepared

# torch.export states "no upper bound" by values of this size and above.
_UNBOUNDED = 2**31


def request_shapes(prepared: Prepared) -> dict[str, Any]:
    """`dynamic_shapes` for `torch.export.export` under `dynamic=True`: every axis may vary unless the trace fixes it."""

    def one(path: Any, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        names: AxisNames = prepared.axes.get(leaf_path(path), (None,) * value.dim())
        return {dim: Dim.STATIC if name in prepared.static else Dim.AUTO for dim, name in enumerate(names)}

    def visit(path: tuple[Any, ...], value: Any) -> Any:
        if type(value) is dict:
            return {key: visit((*path, pytree.MappingKey(key)), item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(visit((*path, pytree.SequenceKey(i)), item) for i, item in enumerate(value))
        node = pytree.SUPPORTED_NODES.get(type(value))
        if node is None or node.flatten_with_keys_fn is None:
            return one(path, value)
        children, _ = node.flatten_with_keys_fn(value)
        return [
            visit((*path, key), item) for key, item in children
        ]  # torch.export wants an object's children as a list

    return {key: visit((pytree.MappingKey(key),), value) for key, value in prepared.inputs.items()}


class Leaf(NamedTuple):
    """A tensor among the inputs: its path, the names of its axes, and its shape in the caller's inputs."""

    path: str
    axes: AxisNames
    given: tuple[int, ...]


def name_symbols(program: ExportedProgram, leaves: Mapping[str, Leaf]) -> dict[str, str]:
    """A readable name for each symbol of the program (`s72` → `batch`).

    Args:
        program: The traced program.
        leaves: The inputs by placeholder name.
    """
    names: dict[str, str] = {}
    sizes: dict[str, tuple[int, int | None]] = {}
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in leaves:
            continue
        path, axes, given = leaves[node.name]
        value = node.meta.get("val")
        for dim, size in enumerate(getattr(value, "shape", ())):
            symbol = getattr(getattr(size, "node", None), "expr", None)
            if isinstance(symbol, sympy.Symbol) and str(symbol) not in names:
                own = own_name(path, dim)
                wanted = (axes[dim] if dim < len(axes) else None) or own
                # Two axes of one name (a mask's batch and the ids') are one where they were given and traced at one size.
                both = (size.node.hint, given[dim] if dim < len(given) else None)
                names[str(symbol)] = wanted if sizes.setdefault(wanted, both) == both else own
    return names


def shape_of(value: torch.Tensor, names: Mapping[str, str]) -> tuple[Size, ...]:
    """A traced tensor's shape with readable axis names."""
    return tuple(size_of(size, names) for size in value.shape)


def size_of(size: Any, names: Mapping[str, str]) -> Size:
    """One traced size: an int, a name, or an expression of names."""
    expression = getattr(getattr(size, "node", None), "expr", None)
    return int(size) if expression is None or expression.is_Integer else text_of(expression, names)


def text_of(expression: sympy.Basic, names: Mapping[str, str]) -> str:
    """An expression of symbols in axis names, as `runtime.axis_expressions` reads it."""
    text = str(expression.xreplace({s: sympy.Symbol(names.get(str(s), str(s))) for s in expression.free_symbols}))
    return re.sub(r"\s+", "", text)


def axis_ranges(program: ExportedProgram, names: Mapping[str, str], *, explicit: bool = False) -> dict[str, AxisRange]:
    """The range of every named axis.

    Unless asked for by `Dim(min=...)`, `torch.export` excludes 0 and 1 from a dynamic axis; the graph has no such limit, so
    a lower bound of 2 means 1.

    Args:
        program: The traced program.
        names: Its symbols' names.
        explicit: The caller stated the bounds, which are kept as they are.
    """
    ranges: dict[str, AxisRange] = {}
    for symbol, bounds in program.range_constraints.items():
        name = names.get(str(symbol))
        if name is None:
            continue
        low = int(bounds.lower) if bounds.lower.is_finite else 0
        high = int(bounds.upper) if bounds.upper.is_finite and bounds.upper < _UNBOUNDED else None
        known = ranges.get(name)
        if known is not None:
            low = max(low, known.minimum)
            high = high if known.maximum is None else known.maximum if high is None else min(high, known.maximum)
        ranges[name] = AxisRange(minimum=1 if low <= (1 if explicit else 2) else low, maximum=high)
    return ranges


def shape_env_of(program: ExportedProgram) -> Any:
    """The `ShapeEnv` of a graph's symbols; None if it has none."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for size in value.shape:
                if isinstance(size, torch.SymInt):
                    return size.node.shape_env
    return None


def may_be_negative(size: int | torch.SymInt) -> bool:
    """Whether a number made of sizes is negative for some of them; a size is 1 at the least.

    A trace may have needed six tokens for one branch; the border still takes one where the graph computes the other, too
    (VITS: relative positions are padded or cut).
    """
    if isinstance(size, int):
        return size < 0
    known = size.node.shape_env.var_to_range
    at_least_one = {
        symbol: ValueRanges(min(known[symbol].lower, sympy.Integer(1)), known[symbol].upper)
        for symbol in size.node.expr.free_symbols
    }
    lower = bound_sympy(size.node.expr, at_least_one).lower
    return not (isinstance(lower, sympy.Integer) and lower >= 0)
