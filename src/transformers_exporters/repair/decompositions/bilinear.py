"""A form of two vectors for each output."""

from __future__ import annotations

from torch import Tensor


def bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x[..., i] * weight[o, i, j] * y[..., j]`, summed: [..., o]."""
    forms, rows, columns = weight.shape
    made = x.matmul(weight.permute(1, 0, 2).reshape(rows, forms * columns))
    result = (made.reshape(*x.shape[:-1], forms, columns) * y.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


RULES = {"aten.bilinear.default": bilinear}
