"""Average pooling whose window is larger than the image, or whose result has a given size."""

from __future__ import annotations

from typing import Any

import torch
from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of


def _avg_pool2d(call: Call) -> Output:
    """Average over what the window covers of the image.

    torch lets a window reach over the end with `ceil_mode` (EfficientNet and ALIGN pool a whole image with a window of
    the hidden size); OpenVINO refuses a window larger than its input, whose size it learns at run time. So the image is
    first filled up with zeros to the window's size, where it is smaller, and the sum divided by what was there.
    """
    value, kernel = call["self"], _pair(call["kernel_size"])
    strides, padding = _pair(call["stride"] or call["kernel_size"]), _pair(call["padding"])
    if call["divisor_override"] is not None:
        raise NotImplementedError("avg_pool2d with a divisor of its own")
    if not call["ceil_mode"] or any(padding):
        rounding = "ceil_torch" if call["ceil_mode"] else "floor"
        exclude = not call["count_include_pad"]
        return ops.avg_pool(value, strides, padding, padding, kernel, exclude, rounding).output(0)
    kind = value.get_element_type()
    ones = ops.broadcast(constant(1, kind), shape_of(value)).output(0)
    sums, counts = (_summed(x, kernel, strides) for x in (value, ones))
    return ops.divide(sums, counts).output(0)


def _summed(value: Output, kernel: list[int], strides: list[int]) -> Output:
    """Means over windows that may reach over the end, with zeros there."""
    axis, zero = constant(0, Type.i64), constant([0, 0], Type.i64)
    sizes = ops.gather(shape_of(value), constant([-2, -1], Type.i64), axis)
    steps, window = constant(strides, Type.i64), constant(kernel, Type.i64)
    # As many windows as start inside the image, which is what ceil_mode means without padding.
    over = ops.maximum(ops.subtract(sizes, window), zero)
    extra = ops.subtract(ops.add(over, steps), constant([1, 1], Type.i64))
    wanted = ops.add(ops.multiply(ops.divide(extra, steps), steps), window)
    after = ops.concat([zero, ops.maximum(ops.subtract(wanted, sizes), zero)], 0)
    filled = ops.pad(
        value,
        constant([0, 0, 0, 0], Type.i64),
        after,
        "constant",
        cast(constant(0, Type.f32), value.get_element_type()),
    )
    return ops.avg_pool(filled, strides, [0, 0], [0, 0], kernel, False, "floor").output(0)


def _pair(value: Any) -> list[int]:
    values = list(value) if isinstance(value, list | tuple | torch.Size) else [value]
    return values * 2 if len(values) == 1 else values


def _adaptive(call: Call) -> Output:
    """Averages over windows that cover the last axes evenly."""
    value, size = call["self"], call["output_size"]
    sizes = [int(n) for n in (size if isinstance(size, list | tuple) else [size])]
    rank, spatial = call.traced("self").dim(), len(sizes)
    if all(n == 1 for n in sizes):
        return ops.reduce_mean(value, constant(list(range(rank - spatial, rank)), Type.i64), True).output(0)
    if rank == spatial + 2:
        return ops.adaptive_avg_pool(value, constant(sizes, Type.i64)).output(0)
    first = constant([0], Type.i64)
    pooled = ops.adaptive_avg_pool(ops.unsqueeze(value, first), constant(sizes, Type.i64))
    return ops.squeeze(pooled, first).output(0)


TRANSLATIONS = {
    "aten.avg_pool2d.default": _avg_pool2d,
    "aten.adaptive_avg_pool1d.default": _adaptive,
    "aten.adaptive_avg_pool2d.default": _adaptive,
    "aten._adaptive_avg_pool2d.default": _adaptive,
    "aten.adaptive_avg_pool3d.default": _adaptive,
    "aten._adaptive_avg_pool3d.default": _adaptive,
}
