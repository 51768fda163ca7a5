"""`repeat_interleave` by a number that may be computed from sizes."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, constant, shape_of


def _repeat_interleave(call: Call) -> Output:
    """Each row along an axis `repeats` times in a row; the frontend's own rule wants a literal number."""
    value, zero = call["self"], constant(0, Type.i64)
    axis = call["dim"]
    if axis is None:
        value, axis = ops.reshape(value, constant([-1], Type.i64), False).output(0), 0
    axis = constant(int(axis) % max(call.traced("self").dim(), 1), Type.i64)
    repeats = call.tensor("repeats", Type.i64)
    count = ops.multiply(ops.gather(shape_of(value), axis, zero), repeats)
    places = ops.divide(ops.range(zero, count, constant(1, Type.i64), Type.i64), repeats)
    return ops.gather(value, places, axis).output(0)


TRANSLATIONS = {"aten.repeat_interleave.self_int": _repeat_interleave}
