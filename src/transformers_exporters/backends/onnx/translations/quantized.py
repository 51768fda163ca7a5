"""Numbers rounded to 8 bits and back: the pairs of QuantizeLinear and DequantizeLinear that runtimes fuse into whole-number kernels."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
import torch.ao.quantization.fx._decomposed  # registers torch.ops.quantized_decomposed
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]

_decomposed = torch.ops.quantized_decomposed
_FLOAT = ir.DataType.FLOAT


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: int) -> Any:
    """`input / scale`, rounded, plus the zero point, within the dtype's range.

    A range narrower than the dtype's (weights from -127) is not clipped again: a value outside of it does not come up,
    because the scale was measured with the same range.
    """
    scale, zero = _scalar(scale, _FLOAT), _scalar(zero_point, ir.DataType(dtype))
    return op.QuantizeLinear(input, scale, zero)


def dequantize_per_tensor(
    input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: int, out_dtype: int = -1
) -> Any:
    """`(input - zero_point) * scale`."""
    result = op.DequantizeLinear(input, _scalar(scale, _FLOAT), _scalar(zero_point, ir.DataType(dtype)))
    return _as(result, out_dtype)


def quantize_per_channel(
    input: Any, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int, dtype: int
) -> Any:
    """`quantize_per_tensor` with a scale for each slice of an axis."""
    zero = op.Cast(zero_points, to=dtype)
    return op.QuantizeLinear(input, op.Cast(scales, to=_FLOAT), zero, axis=axis)


def dequantize_per_channel(
    input: Any,
    scales: Any,
    zero_points: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
    out_dtype: int = -1,
) -> Any:
    """`dequantize_per_tensor` with a scale for each slice of an axis."""
    given = [op.Cast(zero_points, to=dtype)] if zero_points is not None else []
    return _as(op.DequantizeLinear(input, op.Cast(scales, to=_FLOAT), *given, axis=axis), out_dtype)


def _scalar(value: Any, dtype: ir.DataType) -> Any:
    """A number, or a tensor with one element, as a scalar of a dtype."""
    if isinstance(value, int | float):
        return op.Constant(value=ir.tensor(value, dtype=dtype))
    return op.Cast(op.Squeeze(value), to=dtype)


def _as(result: Any, dtype: int) -> Any:
    return result if dtype in (-1, None, _FLOAT) else op.Cast(result, to=dtype)


TRANSLATION = {
    _decomposed.quantize_per_tensor.default: quantize_per_tensor,
    _decomposed.quantize_per_tensor.tensor: quantize_per_tensor,
    _decomposed.dequantize_per_tensor.default: dequantize_per_tensor,
    _decomposed.dequantize_per_tensor.tensor: dequantize_per_tensor,
    _decomposed.quantize_per_channel.default: quantize_per_channel,
    _decomposed.dequantize_per_channel.default: dequantize_per_channel,
}
