"""Average pooling whose window is larger than the image."""

from __future__ import annotations

from typing import Any

import torch
from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of


def _avg_pool2d(call: Call) -> Output:
    """Average over what the window covers of the image.

    torch lets a window reach over the end with `ceil_mode` (EfficientNet and ALIGN pool a whole image with a window of
    the hidden size, up to 2560); OpenVINO refuses a window larger than its input, whose size it learns at run time. So the
    means are two products with matrices that say which place is in which window, whatever the window's size.
    """
    value, kernel = call["self"], _pair(call["kernel_size"])
    strides, padding = _pair(call["stride"] or call["kernel_size"]), _pair(call["padding"])
    if call["divisor_override"] is not None:
        raise NotImplementedError("avg_pool2d with a divisor of its own")
    if not call["ceil_mode"] or any(padding):
        rounding = "ceil_torch" if call["ceil_mode"] else "floor"
        exclude = not call["count_include_pad"]
        return ops.avg_pool(value, strides, padding, padding, kernel, exclude, rounding).output(0)
    length = call.traced("self").dim()
    rows = _weights(value, length - 2, kernel[0], strides[0])
    columns = _weights(value, length - 1, kernel[1], strides[1])
    return ops.matmul(ops.matmul(rows, value, False, False), columns, False, True).output(0)


def _weights(value: Output, axis: int, kernel: int, stride: int) -> Output:
    """[windows, size of the axis]: what each place contributes to the mean over each window that starts in the image."""
    zero, one = constant(0, Type.i64), constant(1, Type.i64)
    size = ops.gather(shape_of(value), constant(axis, Type.i64), zero)
    step, window = constant(stride, Type.i64), constant(kernel, Type.i64)
    # Without padding, ceil_mode has ceil((size - kernel) / stride) + 1 windows, those that start in the image of them.
    over = ops.maximum(ops.subtract(size, window), zero)
    count = ops.add(_ceil(over, step), one)
    count = ops.minimum(count, _ceil(size, step))
    starts = ops.multiply(ops.range(zero, count, one, Type.i64), step)
    distance = ops.subtract(ops.range(zero, size, one, Type.i64), ops.unsqueeze(starts, one))
    inside = ops.logical_and(ops.greater_equal(distance, zero), ops.less(distance, window)).output(0)
    parts = cast(inside, value.get_element_type())
    return ops.divide(parts, ops.reduce_sum(parts, one, True)).output(0)


def _ceil(value: Output, step: Output) -> Output:
    return ops.divide(ops.subtract(ops.add(value, step), constant(1, Type.i64)), step).output(0)


def _pair(value: Any) -> list[int]:
    values = list(value) if isinstance(value, list | tuple | torch.Size) else [value]
    return values * 2 if len(values) == 1 else values


TRANSLATIONS = {"aten.avg_pool2d.default": _avg_pool2d}
