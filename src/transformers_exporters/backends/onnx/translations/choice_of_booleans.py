"""A choice between booleans, by logic: ONNX Runtime's CPU provider has no Where for them (1.32), and refuses the model."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]


def where(condition: Any, self: Any, other: Any) -> Any:
    """`self` where `condition`, else `other`; all three broadcast."""
    if self.dtype != ir.DataType.BOOL:
        return op.Where(condition, self, other)
    return op.Or(op.And(condition, self), op.And(op.Not(condition), other))


def masked_fill(self: Any, mask: Any, value: Any) -> Any:
    """`value`, a number or a tensor without axes, where `mask`, else `self`."""
    if self.dtype == ir.DataType.BOOL and isinstance(value, bool | int | float):
        return op.Or(self, mask) if value else op.And(self, op.Not(mask))
    return where(mask, op.CastLike(value, self), self)


TRANSLATION = {
    torch.ops.aten.where.self: where,
    torch.ops.aten.masked_fill.Scalar: masked_fill,
    torch.ops.aten.masked_fill.Tensor: masked_fill,
}
