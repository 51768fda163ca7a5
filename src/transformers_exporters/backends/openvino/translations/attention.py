"""`scaled_dot_product_attention`, with torch's answer for a row that may attend to nothing: zeros, not NaN."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of


def _attention(call: Call) -> Output:
    """One `ScaledDotProductAttention` node, which OpenVINO's plugins fuse with the cache around it.

    OpenVINO's softmax over a fully masked row is 0/0 (openvinotoolkit/openvino#35959, open; seen on 2026.4.1 with
    left-padded batches of every decoder). Such rows are unmasked for the node and zeroed behind it.
    """
    query, key, value = (call[name] for name in ("query", "key", "value"))
    if call["dropout_p"]:
        raise NotImplementedError("attention with dropout")
    if call["enable_gqa"]:
        key, value = _repeat(key, query), _repeat(value, query)
    kind = query.get_element_type()
    scale = call.tensor("scale", kind) if call["scale"] is not None else None
    mask = call["attn_mask"]
    if mask is None:
        return ops.scaled_dot_product_attention(query, key, value, None, scale, bool(call["is_causal"])).output(0)
    last = constant([-1], Type.i64)
    if mask.get_element_type() == Type.boolean:
        sees = ops.reduce_logical_or(mask, last, True).output(0)
        mask = ops.logical_or(mask, ops.logical_not(sees)).output(0)
    else:
        mask = cast(mask, kind)
        # Not by the largest: of numbers that are all minus infinity it is the lowest finite one here.
        sees = ops.reduce_logical_or(ops.greater(mask, constant(float("-inf"), kind)), last, True).output(0)
        mask = ops.select(sees, mask, constant(0, kind)).output(0)
    made = ops.scaled_dot_product_attention(query, key, value, mask, scale, False)
    # Behind one more axis, because the CPU plugin draws an element-wise op that follows attention directly into the same
    # kernel, which returns garbage from a head size of 128 on (openvino 2026.4.1: errors of 4.5 to 1e18; right with
    # SNIPPETS_MODE=DISABLE, and at head sizes up to 96).
    first = constant(0, Type.i64)
    zeroed = ops.select(ops.unsqueeze(sees, first), ops.unsqueeze(made, first), constant(0, kind))
    return ops.squeeze(zeroed, first).output(0)


def _repeat(value: Output, query: Output) -> Output:
    """Each head of float [batch, heads, length, size] as often in a row as the query has heads for it."""
    axis, one = constant(0, Type.i64), constant([1], Type.i64)
    sizes, wanted = shape_of(value), ops.gather(shape_of(query), constant([1], Type.i64), axis)
    times = ops.divide(wanted, ops.gather(sizes, constant([1], Type.i64), axis))
    wide = ops.unsqueeze(value, constant(2, Type.i64))
    wide = ops.broadcast(wide, ops.concat([one, one, times, one, one], 0), broadcast_spec="BIDIRECTIONAL")
    rest = ops.gather(sizes, constant([2, 3], Type.i64), axis)
    shape = ops.concat([ops.gather(sizes, constant([0], Type.i64), axis), wanted, rest], 0)
    return ops.reshape(wide, shape, False).output(0)


TRANSLATIONS = {"aten.scaled_dot_product_attention.default": _attention}
