"""Write rows of a tensor where they are: the update of a static cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops.core import aten_index_put

__all__ = ["TRANSLATION"]


def index_copy(self: Any, dim: int, index: Any, source: Any) -> Any:
    """`self` with `self[..., index, ...] = source` along `dim`.

    The converter writes Transpose → ScatterND → Transpose, which copies all of `self` three times; ScatterElements touches
    the new rows alone, and ONNX Runtime runs it in place where input and output are one buffer.

    Args:
        self: [..., size, ...].
        dim: The axis that is indexed.
        index: int64 [count].
        source: Like `self`, with `count` along `dim`.
    """
    rank = len(self.shape)
    axis = dim % rank
    others = [position for position in range(rank) if position != axis]
    column = op.Unsqueeze(index, op.Constant(value_ints=others)) if others else index
    return op.ScatterElements(self, op.Expand(column, op.Shape(source)), source, axis=axis)


def index_put(self: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """`self[indices] = values`; with one list of whole numbers along one axis, and values of full shape, as `index_copy`."""
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(given) == 1 and not accumulate and _copies(self, *given[0], values):
        return index_copy(self, given[0][0], given[0][1], values)
    return aten_index_put(self, indices, values, accumulate)


def _copies(self: Any, axis: int, index: Any, values: Any) -> bool:
    whole = index.dtype in (ir.DataType.INT64, ir.DataType.INT32) and len(index.shape) == 1
    if not whole or values.shape is None or len(values.shape) != len(self.shape):
        return False
    expected = [index.shape[0] if position == axis else size for position, size in enumerate(self.shape)]
    return all(size == wanted for size, wanted in zip(values.shape, expected, strict=True))


TRANSLATION = {
    torch.ops.aten.index_copy.default: index_copy,
    torch.ops.aten.index_put.default: index_put,
}
