"""`unfold` and `as_strided` as gathers."""

from __future__ import annotations

from typing import Any

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of


def _scalar(value: Any) -> Output:
    """int64 []."""
    return cast(value, Type.i64) if isinstance(value, Output) else constant(value, Type.i64)


def _count(start: Output, stop: Output, step: Output) -> Output:
    return ops.range(start, stop, step, Type.i64).output(0)


def _unfold(call: Call) -> Output:
    """Windows of `size` every `step` along an axis, as a new last axis."""
    rank = call.traced("self").dim()
    axis = int(call["dimension"]) % max(rank, 1)
    size, step, zero = _scalar(call["size"]), _scalar(call["step"]), constant(0, Type.i64)
    length = ops.gather(shape_of(call["self"]), constant(axis, Type.i64), zero).output(0)
    last = ops.add(ops.subtract(length, size), constant(1, Type.i64)).output(0)
    starts = ops.unsqueeze(_count(zero, last, step), constant(1, Type.i64))
    places = ops.add(starts, _count(zero, size, constant(1, Type.i64)))
    windows = ops.gather(call["self"], places, constant(axis, Type.i64)).output(0)
    order = [*(i for i in range(rank + 1) if i != axis + 1), axis + 1]
    return ops.transpose(windows, constant(order, Type.i64)).output(0)


def _as_strided(call: Call) -> Output:
    """Any strides over the elements of a contiguous tensor.

    Raises:
        NotImplementedError: For a view: its strides count elements of a memory that the graph does not have.
    """
    if not call.traced("self").is_contiguous():
        raise NotImplementedError("as_strided on a view")
    rank = len(call["size"])
    places = _scalar(call["storage_offset"] or 0)
    for i, (size, stride) in enumerate(zip(call["size"], call["stride"], strict=True)):
        steps = _count(constant(0, Type.i64), _scalar(size), constant(1, Type.i64))
        steps = ops.multiply(steps, _scalar(stride)).output(0)
        shape = constant([-1 if axis == i else 1 for axis in range(rank)], Type.i64)
        places = ops.add(places, ops.reshape(steps, shape, False)).output(0)
    flat = ops.reshape(call["self"], constant([-1], Type.i64), False)
    return ops.gather(flat, places, constant(0, Type.i64)).output(0)


TRANSLATIONS = {
    "aten.unfold.default": _unfold,
    "aten.as_strided.default": _as_strided,
    "aten.as_strided_copy.default": _as_strided,
}
