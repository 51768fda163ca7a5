"""Numbers rounded to 8 bits and back, in the form in which OpenVINO finds whole-number kernels for what lies between."""

from __future__ import annotations

from typing import Any

import numpy as np
from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant


def _quantize(call: Call) -> Output:
    """A `FakeQuantize` whose results are the whole numbers, then the cast to their type."""
    lowest, highest = call["quant_min"], call["quant_max"]
    scale, zero = _parameters(call)
    low = ops.multiply(ops.subtract(constant(lowest, Type.f32), zero), scale).output(0)
    high = ops.multiply(ops.subtract(constant(highest, Type.f32), zero), scale).output(0)
    rounded = ops.fake_quantize(
        call.tensor("input", Type.f32),
        low,
        high,
        constant(float(lowest), Type.f32),
        constant(float(highest), Type.f32),
        highest - lowest + 1,
    )
    return cast(rounded.output(0), call.result_type)


def _dequantize(call: Call) -> Output:
    """`(input - zero point) * scale`: with a constant input, OpenVINO keeps the whole numbers in memory."""
    scale, zero = _parameters(call)
    value = ops.convert(call["input"], Type.f32).output(0)
    if zero is not None:
        value = ops.subtract(value, zero).output(0)
    return cast(ops.multiply(value, scale).output(0), call.result_type)


def _parameters(call: Call) -> tuple[Output, Any]:
    """Scale and zero point as f32, of a shape that broadcasts to the input."""
    if "scale" in call.names:
        return call.tensor("scale", Type.f32), call.tensor("zero_point", Type.f32)
    rank = call.traced("input").dim()
    shape = [1] * rank
    shape[call["axis"] % rank] = -1
    target = constant(np.array(shape), Type.i64)
    given = call["zero_points"]
    zero = None if given is None else ops.reshape(cast(given, Type.f32), target, False).output(0)
    return ops.reshape(call.tensor("scales", Type.f32), target, False).output(0), zero


TRANSLATIONS = {
    **{
        f"quantized_decomposed.{name}": _quantize
        for name in ("quantize_per_tensor.default", "quantize_per_tensor.tensor", "quantize_per_channel.default")
    },
    **{
        f"quantized_decomposed.{name}": _dequantize
        for name in ("dequantize_per_tensor.default", "dequantize_per_tensor.tensor", "dequantize_per_channel.default")
    },
}
