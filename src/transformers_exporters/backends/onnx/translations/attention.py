"""`scaled_dot_product_attention` without a copy of the keys, and without a NaN for a query that may see no key."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]

_LOWEST = float(torch.finfo(torch.float32).min)
_SIXTEEN_BITS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention as eager computes it at inference.

    The converter's own translation multiplies keys and query by the root of the scale and transposes the keys through three
    axes: two copies of the whole cache a step. Here the scale goes to the query, and the transpose stands right before the
    MatMul, where ONNX Runtime reads it as a flag of its FusedMatMul.

    Scores are added to the mask and normalised in float32, also in a 16-bit graph. A masked score gets the lowest finite
    number, so nothing is NaN; a query that may see no key gives zeros, as in eager.

    Args:
        query: float [batch, heads, queries, head_dim] (or any leading axes).
        key: float [batch, heads, keys, head_dim]; with `enable_gqa` its heads divide the query's.
        value: float [batch, heads, keys, value_dim].
        attn_mask: bool (True may be seen) or float (added), broadcast to [batch, heads, queries, keys].
        dropout_p: Not applied: exported models are in eval mode.
        is_causal: Query i sees the keys up to i.
        scale: Factor of the scores; the inverse root of head_dim if None.
        enable_gqa: Each group of query heads shares one key head.
    """
    rank = len(key.shape)
    dtype = query.dtype
    shape = query.shape
    if scale != 1.0:
        query = op.Mul(query, op.Cast(_factor(query, scale), to=dtype))
        query.shape, query.type = shape, ir.TensorType(dtype)
    if enable_gqa:
        key, value = _repeated(key, query), _repeated(value, query)
    scores = op.MatMul(query, op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2]))
    if dtype in _SIXTEEN_BITS:
        scores = op.Cast(scores, to=ir.DataType.FLOAT)
    computed = ir.DataType.FLOAT if dtype in _SIXTEEN_BITS else dtype
    seen = None
    if is_causal:
        scores = op.Add(scores, _bias_of_seen(_causal(query, key), computed))
    elif attn_mask is not None:
        bias, seen = _bias(attn_mask, computed)
        scores = op.Add(scores, bias)
    weights = op.Softmax(scores, axis=-1)
    if dtype in _SIXTEEN_BITS:
        weights = op.Cast(weights, to=dtype)
    # Known head counts let the keys' repetition be taken out (graph_fixes.grouped_heads).
    weights.shape, weights.type = ir.Shape([*shape[:-1], None]), ir.TensorType(dtype)
    result = op.MatMul(weights, value)
    if seen is None:
        return result
    return op.Where(seen, result, _number(0.0, dtype))


def _factor(query: Any, scale: float | None) -> Any:
    """The factor of the scores, float32 []: a constant where the head's width is known."""
    width = query.shape[-1]
    if scale is not None:
        return op.Constant(value_float=scale)
    if isinstance(width, int):
        return op.Constant(value_float=width**-0.5)
    size = op.Squeeze(op.Shape(query, start=-1), op.Constant(value_ints=[0]))
    return op.Reciprocal(op.Sqrt(op.Cast(size, to=ir.DataType.FLOAT)))


def _bias(mask: Any, dtype: ir.DataType) -> tuple[Any, Any]:
    """What is added to the scores, and bool [..., queries, 1]: whether a query may see any key."""
    if mask.dtype == ir.DataType.BOOL:
        bias, hidden = _bias_of_seen(mask, dtype), _number(_LOWEST, dtype)
        return bias, op.Greater(op.ReduceMax(bias, op.Constant(value_ints=[-1]), keepdims=1), hidden)
    bias = op.Cast(mask, to=dtype)
    highest = op.ReduceMax(bias, op.Constant(value_ints=[-1]), keepdims=1)
    return op.Max(bias, _number(_LOWEST, dtype)), op.Greater(highest, _number(float("-inf"), dtype))


def _bias_of_seen(seen: Any, dtype: ir.DataType) -> Any:
    """0 where bool `seen` holds, else the lowest finite number."""
    return op.Where(seen, _number(0.0, dtype), _number(_LOWEST, dtype))


def _number(number: float, dtype: ir.DataType) -> Any:
    return op.Cast(op.Constant(value_float=number), to=dtype)


def _causal(query: Any, key: Any) -> Any:
    """bool [queries, keys]: True on and below the diagonal."""
    zero, one = op.Constant(value_int=0), op.Constant(value_int=1)
    queries = op.Range(zero, op.Squeeze(op.Shape(query, start=-2, end=-1)), one)
    keys = op.Range(zero, op.Squeeze(op.Shape(key, start=-2, end=-1)), one)
    return op.LessOrEqual(
        op.Unsqueeze(keys, op.Constant(value_ints=[0])), op.Unsqueeze(queries, op.Constant(value_ints=[1]))
    )


def _repeated(kept: Any, query: Any) -> Any:
    """Repeat each head for its group of query heads; `graph_fixes.grouped_heads` takes the copy out where it can."""
    heads, queried = kept.shape[-3], query.shape[-3]
    if heads == queried:
        return kept
    rank, size = len(kept.shape), None
    before, after = op.Shape(kept, start=0, end=rank - 2), op.Shape(kept, start=rank - 2)
    if isinstance(heads, int) and isinstance(queried, int):
        group, total = op.Constant(value_ints=[queried // heads]), op.Constant(value_ints=[queried])
        size = queried // heads
    else:
        total = op.Shape(query, start=rank - 3, end=rank - 2)
        group = op.Div(total, op.Shape(kept, start=rank - 3, end=rank - 2))
    spread = op.Unsqueeze(kept, op.Constant(value_ints=[rank - 2]))
    expanded = op.Expand(spread, op.Concat(before, group, after, axis=0))
    result = op.Reshape(expanded, op.Concat(op.Shape(kept, start=0, end=rank - 3), total, after, axis=0))
    sizes = list(kept.shape)
    for value, shape in (
        (spread, [*sizes[:-2], 1, *sizes[-2:]]),
        (expanded, [*sizes[:-2], size, *sizes[-2:]]),
        (result, [*sizes[:-3], queried, *sizes[-2:]]),
    ):
        value.shape, value.type = ir.Shape(shape), ir.TensorType(kept.dtype)
    return result


TRANSLATION = {torch.ops.aten.scaled_dot_product_attention.default: scaled_dot_product_attention}
