"""Finite sizes for every dynamic axis: ExecuTorch plans its memory before it knows an input."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils._sympy.value_ranges import ValueRanges

from ...artifact.spec import ComponentSpec
from .upper_sizes import largest_size

#: Bounds of axes for which the caller states none, by the start of their name; any other axis gets `DEFAULT_SIZE`.
DEFAULTS = {"batch": 16, "height": 512, "width": 512, "samples": 160_000, "frames": 3000}
DEFAULT_SIZE = 1024

#: Where the largest tensor of the graph would not fit `LARGEST_TENSOR`, smaller bounds are tried in this order:
#: (batch, fraction of image and audio axes, any other axis). Smaller limits that the model itself states always win,
#: and no bound is below the size that was traced.
LADDER = (
    (16, 1.0, 1024),
    (16, 1.0, 512),
    (16, 0.5, 512),
    (16, 0.25, 512),
    (16, 0.125, 512),
    (8, 0.25, 512),
    (4, 0.25, 512),
    (8, 0.125, 512),
    (4, 0.125, 512),
    (4, 0.0625, 512),
    (2, 0.0625, 512),
    (4, 0.0625, 256),
    (4, 0.0625, 128),
    (4, 0.03, 64),
    (2, 0.03, 32),
    (2, 0.0, 2),
)

#: Bytes that one tensor may need at its bounds. The arena is a small multiple of it, and the Python runtime touches
#: every page of the arena when it loads a method (measured: 4 GB take 16 s and 4 GB of RSS, executorch 1.5.1).
LARGEST_TENSOR = 2**28


def choose_bounds(
    program: ExportedProgram, spec: ComponentSpec, symbols: Mapping[str, str], explicit: bool
) -> dict[sympy.Symbol, int]:
    """A finite upper bound for every symbol of the graph.

    Args:
        program: The traced graph.
        spec: Its border; `spec.axes[name].maximum` is a limit.
        symbols: The spec's axis name of each symbol.
        explicit: The limits were stated by the caller and are kept as they are. Otherwise they are the model's own and
            only cap the defaults: a limit of 131072 positions is no reason to plan memory for them.
    """
    shape_env = shape_env_of(program)
    if shape_env is None:
        return {}
    names = _named(shape_env, symbols)
    limits: dict[sympy.Symbol, int | None] = {}
    for symbol, known in shape_env.var_to_range.items():
        if names.get(symbol) in spec.axes:
            limits[symbol] = spec.axes[names[symbol]].maximum
        else:
            limits[symbol] = int(known.upper) if isinstance(known.upper, sympy.Integer) else None
    shapes = _float_shapes(program)
    bounds: dict[sympy.Symbol, int] = {}
    for rung in LADDER:
        for symbol, limit in limits.items():
            default = max(_default(names.get(symbol, ""), *rung), _traced_size(shape_env, symbol))
            keep = limit is not None and (explicit or limit <= default)
            bounds[symbol] = limit if keep and limit is not None else default
        if _largest(shapes, bounds) <= LARGEST_TENSOR:
            break
    return bounds


def bounded_spec(spec: ComponentSpec, symbols: Mapping[str, str], bounds: Mapping[sympy.Symbol, int]) -> ComponentSpec:
    """The border with the bounds as the maxima of its axes, so that the run door refuses larger inputs by name."""
    axes = dict(spec.axes)
    for symbol, bound in bounds.items():
        name = symbols.get(str(symbol))
        if name in axes:
            axes[name] = dataclasses.replace(axes[name], maximum=bound)
    return dataclasses.replace(spec, axes=axes)


@contextmanager
def bounds_applied(program: ExportedProgram, bounds: Mapping[sympy.Symbol, int]) -> Iterator[None]:
    """Narrow the graph's symbols to `bounds`; on exit they are as before (copies of a graph share one set of symbols)."""
    shape_env = shape_env_of(program)
    if shape_env is None:
        yield
        return
    before = dict(shape_env.var_to_range)
    try:
        for symbol, bound in bounds.items():
            lower = before[symbol].lower
            shape_env.var_to_range[symbol] = ValueRanges(min(lower, sympy.Integer(bound)), sympy.Integer(bound))
        yield
    finally:
        shape_env.var_to_range.update(before)


def shape_env_of(program: ExportedProgram) -> Any:
    """The `ShapeEnv` of a graph's symbols; None if it has none."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for size in value.shape:
                if isinstance(size, torch.SymInt):
                    return size.node.shape_env
    return None


def _default(name: str, batch: int, fraction: float, size: int) -> int:
    kind = next((kind for kind in DEFAULTS if name.startswith(kind)), None)
    if kind is None:
        return size
    return batch if kind == "batch" else int(DEFAULTS[kind] * fraction)


def _named(shape_env: Any, symbols: Mapping[str, str]) -> dict[sympy.Symbol, str]:
    return {symbol: symbols[str(symbol)] for symbol in shape_env.var_to_range if str(symbol) in symbols}


def _traced_size(shape_env: Any, symbol: sympy.Symbol) -> int:
    values = shape_env.backed_var_to_val if hasattr(shape_env, "backed_var_to_val") else shape_env.var_to_val
    hint = values.get(symbol)
    return int(hint) if hint is not None and hint.is_Integer else 2


def _float_shapes(program: ExportedProgram) -> set[tuple[Any, ...]]:
    """Every symbolic shape in the graph, with the size of its elements in front, once each."""
    shapes = set()
    for node in program.graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, list | tuple) else (values,):
            if isinstance(value, torch.Tensor):
                sizes = (s.node.expr if isinstance(s, torch.SymInt) else sympy.Integer(s) for s in value.shape)
                shapes.add((value.element_size(), *sizes))
    return shapes


def _largest(shapes: set[tuple[Any, ...]], bounds: Mapping[sympy.Symbol, int]) -> int:
    ranges = {symbol: ValueRanges(sympy.Integer(0), sympy.Integer(bound)) for symbol, bound in bounds.items()}
    known: dict[sympy.Expr, int] = {}
    largest = 0
    for itemsize, *sizes in shapes:
        number = itemsize
        for size in sizes:
            if size not in known:
                known[size] = largest_size(size, ranges) or 1
            number *= known[size]
        largest = max(largest, number)
    return largest
