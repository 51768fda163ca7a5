"""The largest value of a symbolic size."""

from __future__ import annotations

import pytest
import sympy
from executorch.exir import sym_util
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, PythonMod
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from transformers_exporters.backends.executorch.upper_sizes import exact_upper_bounds, largest_size

S, B = sympy.Symbol("s", positive=True, integer=True), sympy.Symbol("b", positive=True, integer=True)
U = sympy.Symbol("u0", integer=True)
RANGES = {S: ValueRanges(2, 1000), B: ValueRanges(2, 16)}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (sympy.Integer(7), 7),
        (4 * B * S, 64_000),
        (8 * FloorDiv(S + 7, 8), 1000),
        # Intervals give 2 000 000 // 2 for this one.
        (FloorDiv(2 * S * S, S), 2000),
        # Largest below the bound: what is missing to a multiple of 8.
        (PythonMod(-S, 8), 7),
        (B + FloorDiv(S * S, S + 1), 1015),
        # Largest where the symbol is small.
        (FloorDiv(16, FloorDiv(S, 16)), 16),
    ],
)
def test_largest_size(size: sympy.Expr, expected: int) -> None:
    assert largest_size(size, RANGES) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # At most the 25 places of each row, not those of 16 rows in one.
        (FloorDiv(U, B), 25),
        (4 * U, 1600),
        (B * FloorDiv(U, B) + 1, 401),
        # What is left shrinks as the count grows: nothing follows from the most that there can be.
        (25 * B - U, 400),
    ],
)
def test_a_count_of_places(size: sympy.Expr, expected: int) -> None:
    assert largest_size(size, {B: ValueRanges(1, 16), U: ValueRanges(0, 400)}, {U: 25 * B}) == expected


def test_intervals_would_be_far_off() -> None:
    assert int(bound_sympy(FloorDiv(2 * S * S, S), RANGES).upper) > 100_000


def test_a_size_without_a_bound_has_none() -> None:
    unknown = sympy.Symbol("s9", positive=True, integer=True)
    assert largest_size(unknown, {unknown: ValueRanges(0, sympy.oo)}) is None


def test_a_number_that_is_data_without_a_bound_gets_one() -> None:
    """What lies behind a place in a sequence of 38; the place may be a number that lowering asked for anew."""
    place, other = (sympy.Symbol(name, integer=True) for name in ("u0", "u1"))
    assert largest_size(38 - place, {}) == 38
    assert largest_size(38 - place - other, {place: ValueRanges(-sympy.oo, 31)}) == 38
    assert largest_size(place + 3, {place: ValueRanges(0, sympy.oo)}) == 1027


def test_executorch_asks_for_the_exact_bound_while_a_component_is_lowered() -> None:
    shapes = ShapeEnv()
    shapes.var_to_range[S] = RANGES[S]
    size = shapes.create_symintnode(FloorDiv(2 * S * S, S), hint=4)
    assert sym_util.eval_upper_bound(size) > 100_000
    with exact_upper_bounds():
        assert sym_util.eval_shape_upper_bound([size, 3]) == [2000, 3]
    assert sym_util.eval_upper_bound(size) > 100_000


def test_frames_are_counted_by_the_smallest_frame() -> None:
    """HY-V4-VL: the patches of a video by those of a frame, all three of them data; at their bounds that is none."""
    patches, height, width = sympy.symbols("u0 u1 u2", integer=True)
    bounds = {patches: ValueRanges(0, 500), height: ValueRanges(0, 1024), width: ValueRanges(0, 1024)}
    assert largest_size(FloorDiv(patches, height * width), bounds) == 500
