"""`scaled_dot_product_attention` without a copy of the keys, and without a NaN for a query that may see no key."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]

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
    factor = scale if scale is not None else float(query.shape[-1]) ** -0.5
    shape = query.shape
    if factor != 1.0:
        query = op.Mul(query, op.Cast(op.Constant(value_float=factor), to=dtype))
        query.shape, query.type = shape, ir.TensorType(dtype)
    if enable_gqa:
        key, value = _repeated(key, query), _repeated(value, query)
    scores = op.MatMul(query, op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2]))
    if dtype in _SIXTEEN_BITS:
        scores = op.Cast(scores, to=ir.DataType.FLOAT)
    computed = ir.DataType.FLOAT if dtype in _SIXTEEN_BITS else dtype
    if is_causal:
        attn_mask = _causal(query, key)
    seen = None
    if attn_mask is not None:
        bias, seen = _bias(attn_mask, computed)
        scores = op.Add(scores, bias)
    weights = op.Softmax(scores, axis=-1)
    if dtype in _SIXTEEN_BITS:
        weights = op.Cast(weights, to=dtype)
    # Known head counts let the keys' repetition be taken out (graph_fixes.grouped_heads).
    weights.shape, weights.type = ir.Shape([*shape[:-1], None]), ir.TensorType(dtype)
    result = op.MatMul(weights, value)
    if seen is None or is_causal:
        return result
    return op.Where(seen, result, op.Cast(op.Constant(value_float=0.0), to=dtype))


def _bias(mask: Any, dtype: ir.DataType) -> tuple[Any, Any]:
    """What is added to the scores, and bool [..., queries, 1]: whether a query may see any key."""
    lowest = op.Cast(op.Constant(value_float=float(torch.finfo(torch.float32).min)), to=dtype)
    if mask.dtype == ir.DataType.BOOL:
        bias = op.Where(mask, op.Cast(op.Constant(value_float=0.0), to=dtype), lowest)
        return bias, op.Greater(op.ReduceMax(bias, op.Constant(value_ints=[-1]), keepdims=1), lowest)
    bias = op.Cast(mask, to=dtype)
    infinite = op.Cast(op.Constant(value_float=float("-inf")), to=dtype)
    seen = op.Greater(op.ReduceMax(bias, op.Constant(value_ints=[-1]), keepdims=1), infinite)
    return op.Max(bias, lowest), seen


def _causal(query: Any, key: Any) -> Any:
    """bool [queries, keys]: True on and below the diagonal."""
    zero, one = op.Constant(value_int=0), op.Constant(value_int=1)
    queries = op.Range(zero, op.Squeeze(op.Shape(query, start=-2, end=-1)), one)
    keys = op.Range(zero, op.Squeeze(op.Shape(key, start=-2, end=-1)), one)
    return op.LessOrEqual(
        op.Unsqueeze(keys, op.Constant(value_ints=[0])), op.Unsqueeze(queries, op.Constant(value_ints=[1]))
    )


def _repeated(kept: Any, query: Any) -> Any:
    """Repeat each head for its group of query heads; the fusion of grouped attention takes the copy out again."""
    heads, groups = kept.shape[-3], query.shape[-3]
    if not (isinstance(heads, int) and isinstance(groups, int)) or heads == groups:
        return kept
    shape = op.Shape(kept)
    spread = op.Unsqueeze(kept, op.Constant(value_ints=[-3]))
    before, after = op.Slice(shape, [0], [-2]), op.Slice(shape, [-2], [9])
    expanded = op.Expand(spread, op.Concat(before, op.Constant(value_ints=[groups // heads]), after, axis=0))
    return op.Reshape(expanded, op.Concat(op.Slice(shape, [0], [-3]), op.Constant(value_ints=[groups]), after, axis=0))


TRANSLATION = {torch.ops.aten.scaled_dot_product_attention.default: scaled_dot_product_attention}
