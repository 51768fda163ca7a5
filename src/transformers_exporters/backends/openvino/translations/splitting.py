"""Ops that return a list of pieces. The traced graph knows how many there are, whatever the frontend can infer."""

from __future__ import annotations

from collections.abc import Sequence

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, constant, number, numbers


def _axis(call: Call) -> int:
    return int(call["dim"]) % call.traced("self").dim()


def _pieces(call: Call) -> Sequence[Output]:
    """`split`, `chunk` and their relatives: the sizes that were traced, the last piece taking what is left."""
    value, axis = call["self"], _axis(call)
    sizes = [piece.shape[axis] for piece in call.result]
    if len(sizes) == 1:
        return [value]
    lengths = [size if isinstance(size, int) else None for size in sizes]
    if lengths.count(None) > 1:
        return _dynamic_pieces(call, value, axis, len(sizes))
    axis_input = constant(axis, Type.i64)
    filled = constant([-1 if length is None else length for length in lengths], Type.i64)
    return ops.variadic_split(value, axis_input, filled).outputs()


def _dynamic_pieces(call: Call, value: Output, axis: int, count: int) -> Sequence[Output]:
    given = (
        call["split_size"]
        if "split_size" in call.names
        else call["split_sizes"]
        if "split_sizes" in call.names
        else None
    )
    if isinstance(given, list):
        return ops.variadic_split(value, constant(axis, Type.i64), numbers(given)).outputs()
    if given is None:  # chunk: as many elements a piece as the first one has
        length = ops.gather(ops.shape_of(value, Type.i64), constant(axis, Type.i64), constant(0, Type.i64)).output(0)
        total = ops.add(length, constant(count - 1, Type.i64)).output(0)
        given = ops.divide(total, constant(count, Type.i64)).output(0)
    step = number(given)
    pieces = []
    for i in range(count):
        start = ops.multiply(step, constant([i], Type.i64)).output(0)
        stop = ops.multiply(step, constant([i + 1], Type.i64)).output(0)
        pieces.append(ops.slice(value, start, stop, constant([1], Type.i64), constant([axis], Type.i64)).output(0))
    return pieces


def _unbind(call: Call) -> Sequence[Output]:
    value, axis = call["self"], constant(_axis(call), Type.i64)
    return [ops.gather(value, constant(i, Type.i64), axis).output(0) for i in range(len(call.result))]


TRANSLATIONS = {
    "aten.chunk.default": _pieces,
    "aten.split.Tensor": _pieces,
    "aten.split.sizes": _pieces,
    "aten.split_with_sizes.default": _pieces,
    "aten.unsafe_split.Tensor": _pieces,
    "aten.unsafe_chunk.default": _pieces,
    "aten.unbind.int": _unbind,
}
