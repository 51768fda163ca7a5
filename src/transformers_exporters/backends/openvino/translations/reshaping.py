"""Reshapes that name axes instead of sizes."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, constant, numbers, shape_of


def _axes(value: Output, first: int, last: int) -> list[Output]:
    """The sizes of the axes from `first` up to, but not including, `last`: int64 [n], or nothing."""
    if first >= last:
        return []
    return [ops.gather(shape_of(value), constant(list(range(first, last)), Type.i64), constant(0, Type.i64)).output(0)]


def _joined(parts: list[Output]) -> Output:
    return parts[0] if len(parts) == 1 else ops.concat(parts, 0).output(0)


def _flatten(call: Call) -> Output:
    value, rank = call["self"], call.traced("self").dim()
    minus_one = constant([-1], Type.i64)
    if rank == 0:
        return ops.reshape(value, minus_one, False).output(0)
    start, end = call["start_dim"] % rank, call["end_dim"] % rank
    shape = _joined([*_axes(value, 0, start), minus_one, *_axes(value, end + 1, rank)])
    return ops.reshape(value, shape, False).output(0)


def _reshape(call: Call) -> Output:
    """With the size that `-1` stands for, where the trace knows it: OpenVINO finds only that it is at least one.

    A product with that axis would come out of the saved file with one column (GLM-5-Next's streams).
    """
    sizes = list(call[call.names[1]])  # `shape` of a reshape, `size` of a view
    for axis, size in enumerate(sizes):
        if isinstance(size, int) and size == -1 and isinstance(call.result.shape[axis], int):
            sizes[axis] = call.result.shape[axis]
    return ops.reshape(call["self"], numbers(sizes), False).output(0)


def _unflatten(call: Call) -> Output:
    value, rank = call["self"], call.traced("self").dim()
    axis = call["dim"] % rank
    return ops.reshape(
        value, _joined([*_axes(value, 0, axis), numbers(call["sizes"]), *_axes(value, axis + 1, rank)]), False
    ).output(0)


def _like(call: Call) -> Output:
    return ops.reshape(call["self"], shape_of(call["other"]), False).output(0)


TRANSLATIONS = {
    "aten.flatten.using_ints": _flatten,
    "aten.reshape.default": _reshape,
    "aten.view.default": _reshape,
    "aten.unflatten.int": _unflatten,
    "aten.view_as.default": _like,
    "aten.reshape_as.default": _like,
}
