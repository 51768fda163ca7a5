"""Finite sizes for every dynamic axis: ExecuTorch plans its memory before it knows an input."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import sympy
from torch.export import ExportedProgram
from torch.utils._sympy.value_ranges import ValueRanges

from ...artifact.spec import ComponentSpec
from ...trace.dims import shape_env_of
from .counts import counts_of
from .planned_memory import Memory
from .upper_sizes import largest_size

#: Bounds of axes for which the caller states none, by the start of their name; any other axis gets `DEFAULT_SIZE`.
DEFAULTS = {"batch": 16, "images": 64, "height": 512, "width": 512, "samples": 160_000, "frames": 3000}
DEFAULT_SIZE = 1024

#: The first axis of packed features (the frames of all videos) is called a batch, too, and what data counts grows with it:
#: their bounds are at least this many times the traced size.
ROWS = 8

#: Where a graph would need more than `MOST_MEMORY`, the axes of its largest tensors are halved, those first that are above
#: their floor in the first row: (batch, fraction of image and audio defaults, axes with a name, axes without). Smaller
#: limits that the model itself states always win, and no bound is below `ROOM` times the size that was traced.
FLOORS = (
    (8, 0.25, 512, 512),
    (8, 0.125, 256, 256),
    (4, 0.125, 256, 128),
    (4, 0.0625, 256, 64),
    (4, 0.03, 128, 8),
    (2, 0.0625, 128, 32),
    (1, 0.0, 2, 2),
)

#: Who traces two sentences wants to run more and longer ones, however much memory that takes. Pictures and sound may be as
#: large as the traced ones (twice the height and the width are sixteen times the attention).
ROOM = 3
EXTENTS = ("height", "width", "samples", "frames")

#: torch's limit of a size that is data (the count of a `nonzero`): as good as none.
_ANY = 2**40

#: Bytes that the intermediate values of a graph may take at its bounds, those that live at the same time. The Python
#: runtime touches every page of its memory when it loads a method (measured: 4 GB take 16 s and 4 GB of RSS, executorch 1.5.1).
MOST_MEMORY = 2**29
#: Beyond this the traced sizes are room enough: a phone or a board could not load the program at all.
MOST_USABLE = 2**32


def choose_bounds(
    program: ExportedProgram,
    spec: ComponentSpec,
    symbols: Mapping[str, str],
    explicit: bool,
    sample: Mapping[sympy.Symbol, int] = MappingProxyType({}),
) -> dict[sympy.Symbol, int]:
    """A finite upper bound for every symbol of the graph.

    Args:
        program: The traced graph.
        spec: Its border; `spec.axes[name].maximum` is a limit.
        symbols: The spec's axis name of each symbol.
        explicit: The limits were stated by the caller and are kept as they are. Otherwise they are the model's own and
            only cap the defaults: a limit of 131072 positions is no reason to plan memory for them.
        sample: What sizes that are data were for the traced sample, as far as that is known.
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
            limits[symbol] = int(known.upper) if isinstance(known.upper, sympy.Integer) and known.upper < _ANY else None
    bounds: dict[sympy.Symbol, int] = {}
    floors: list[dict[sympy.Symbol, int]] = [{} for _ in FLOORS]
    as_traced: dict[sympy.Symbol, int] = {}
    for symbol, limit in limits.items():
        traced, name = sample.get(symbol, _traced_size(shape_env, symbol)), names.get(symbol, "")
        grows = name.startswith("batch") or symbol in sample
        bound = max(_default(name, 16, 1.0, DEFAULT_SIZE, DEFAULT_SIZE), ROWS * traced if grows else traced)
        if limit is not None and (explicit or limit <= bound):
            bound = limit
        bounds[symbol] = bound
        kept = explicit and limit == bound
        for floor, row in zip(floors, FLOORS, strict=True):
            least = max(_default(name, *row), traced if name.startswith(EXTENTS) else ROOM * traced)
            floor[symbol] = bound if kept else min(least, bound)
        as_traced[symbol] = bound if kept else min(traced, bound)
    counts = counts_of(program)
    memory = Memory(program, counts)
    for floor, allowed in [*((floor, MOST_MEMORY) for floor in floors), (as_traced, MOST_USABLE)]:
        while memory.needed(bounds) > allowed and _halve(bounds, memory, floor, names):
            pass
    ranges = {symbol: ValueRanges(sympy.Integer(0), sympy.Integer(bound)) for symbol, bound in bounds.items()}
    most = {symbol: largest_size(count, ranges) for symbol, count in counts.items() if symbol in bounds}
    return bounds | {symbol: size for symbol, size in most.items() if size is not None}


def _halve(
    bounds: dict[sympy.Symbol, int],
    memory: Memory,
    floor: Mapping[sympy.Symbol, int],
    names: Mapping[sympy.Symbol, str],
) -> bool:
    """Halve the bound that shrinks the largest tensor most; of equals, the one that is largest. False if all are down.

    Symbols of one name are one axis of the border, and go down together.
    """
    shape = memory.largest(bounds)
    symbols = {symbol for size in shape for symbol in size.free_symbols}
    smaller = []
    for symbol in sorted(symbols, key=str):
        if symbol in bounds and bounds[symbol] > floor[symbol]:
            twins = [other for other in bounds if other == symbol or names.get(other, other) == names.get(symbol)]
            halved = {other: min(bounds[other], max(bounds[other] // 2, floor[other])) for other in twins}
            smaller.append(({**bounds, **halved}, bounds[symbol]))
    if not smaller:
        return False
    best, _ = min(smaller, key=lambda item: (memory.bytes(shape, item[0]), -item[1]))
    bounds.update(best)
    return True


def bounded_spec(spec: ComponentSpec, symbols: Mapping[str, str], bounds: Mapping[sympy.Symbol, int]) -> ComponentSpec:
    """The border with the bounds as the maxima of its axes, so that the run door refuses larger inputs by name."""
    axes = dict(spec.axes)
    for symbol, bound in bounds.items():
        name = symbols.get(str(symbol))
        if name in axes:
            least = min(bound, *(b for s, b in bounds.items() if symbols.get(str(s)) == name))
            axes[name] = dataclasses.replace(axes[name], maximum=least)
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


def _default(name: str, batch: int, fraction: float, named: int, unnamed: int) -> int:
    kind = next((kind for kind in DEFAULTS if name.startswith(kind)), None)
    if kind is None:  # an axis that nobody named is called by its input and its place: `pixel_values_4`
        return unnamed if not name or name.rpartition("_")[2].isdigit() else named
    return batch if kind == "batch" else int(DEFAULTS[kind] * fraction)


def _named(shape_env: Any, symbols: Mapping[str, str]) -> dict[sympy.Symbol, str]:
    return {symbol: symbols[str(symbol)] for symbol in shape_env.var_to_range if str(symbol) in symbols}


def _traced_size(shape_env: Any, symbol: sympy.Symbol) -> int:
    values = shape_env.backed_var_to_val if hasattr(shape_env, "backed_var_to_val") else shape_env.var_to_val
    # Of a size that is data: what it was where the trace computed with the sample's values.
    hint = values.get(symbol, shape_env.real_tensor_prop_unbacked_vals.get(symbol))
    return int(hint) if hint is not None and hint.is_Integer else 2
