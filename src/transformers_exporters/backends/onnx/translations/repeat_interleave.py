"""Repeat every entry along an axis by a number that follows from the inputs' sizes.

onnxscript 0.7.2 puts such a number one axis too early (https://github.com/microsoft/onnxscript/pull/2548 wrote it): ONNX Runtime
refuses most sizes, and where the axis is as long as the number, nothing is repeated.
"""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]


def repeat_interleave(self: Any, repeats: Any, dim: int | None = None, output_size: Any = None) -> Any:
    """Every entry `repeats` times, one after the other.

    Args:
        self: [..., size, ...].
        repeats: A number, or int64 [].
        dim: The axis; None: of the flattened tensor.
        output_size: Not needed.
    """
    if dim is None:
        self, dim = op.Reshape(self, op.Constant(value_ints=[-1])), 0
        rank = 1
    else:
        rank = len(self.shape)
    axis = dim % rank
    if isinstance(repeats, int):
        count = op.Constant(value_ints=[repeats])
    else:
        count = op.Reshape(repeats, op.Constant(value_ints=[1]))
    before = op.Constant(value_ints=[1] * (axis + 1))
    after = [op.Constant(value_ints=[1] * (rank - axis - 1))] if axis + 1 < rank else []
    column = op.Unsqueeze(self, op.Constant(value_ints=[axis + 1]))
    tiled = op.Expand(column, op.Concat(before, count, *after, axis=0))
    length = op.Mul(op.Shape(self, start=axis, end=axis + 1), count)
    outer = [op.Shape(self, start=0, end=axis)] if axis else []
    inner = [op.Shape(self, start=axis + 1)] if axis + 1 < rank else []
    return op.Reshape(tiled, op.Concat(*outer, length, *inner, axis=0), allowzero=1)


TRANSLATION = {torch.ops.aten.repeat_interleave.self_int: repeat_interleave}
