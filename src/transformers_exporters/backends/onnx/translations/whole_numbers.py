"""Rounding and cutting of integers, which torch allows and ONNX has for floats only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops.core import aten_round_decimals

__all__ = ["TRANSLATION"]

_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.INT16, ir.DataType.INT8, ir.DataType.UINT8)


def _rounding(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def rounded(self: Any) -> Any:
        """`self`, rounded if it is not whole already."""
        return op.Identity(self) if self.dtype in _INTEGERS else convert(self)

    return rounded


def round_decimals(self: Any, decimals: int = 0) -> Any:
    """`self`, rounded to `decimals` digits behind the point."""
    if self.dtype in _INTEGERS and decimals >= 0:
        return op.Identity(self)
    return aten_round_decimals(self, decimals)


def relu(self: Any) -> Any:
    """`self`, at least 0."""
    if self.dtype in _INTEGERS:
        return op.Max(self, op.CastLike(op.Constant(value_int=0), self))
    return op.Relu(self)


TRANSLATION = {
    torch.ops.aten.floor.default: _rounding(op.Floor),
    torch.ops.aten.ceil.default: _rounding(op.Ceil),
    torch.ops.aten.round.default: _rounding(op.Round),
    torch.ops.aten.round.decimals: round_decimals,
    torch.ops.aten.relu.default: relu,
}
