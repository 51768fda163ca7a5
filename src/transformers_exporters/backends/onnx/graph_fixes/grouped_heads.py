"""Attention over shared key heads without repeating them.

`repeat_kv` gives every query head its own copy of a key head: each step copies the whole cache, once for the keys and once
for the values. The query heads of a group lie side by side, so they can be stacked as rows of one MatMul instead.
"""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["apply"]


def apply(graph: ir.Graph) -> int:
    """`MatMul(x, repeat(k))` → `Reshape(MatMul(Reshape(x), k))`, also with a Transpose between; x is [b, heads, n, m].

    Does not fire where the number of heads on either side is not known as a number, or the repeat is not
    Unsqueeze(axis 2) → Expand → Reshape of a 4-D tensor.
    """
    changed = 0
    for node in list(graph):
        if node.op_type != "MatMul" or node.domain:
            continue
        left, right = node.inputs
        if left is None or right is None:
            continue
        transposed = _swaps_last_two(right.producer())
        repeated = right.producer().inputs[0] if transposed else right  # type: ignore[union-attr]
        kept = _before_repeat(repeated)
        if kept is None or repeated is None or not _has_heads(left, _size(repeated, 1)):
            continue
        _rewrite(graph, node, left, kept, transposed=transposed, heads=_size(repeated, 1))
        changed += 1
    return changed


def _rewrite(graph: ir.Graph, node: ir.Node, left: ir.Value, kept: ir.Value, *, transposed: bool, heads: int) -> None:
    shared = _size(kept, 1)
    stack, unstack = _constant([0, shared, -1, 0]), _constant([0, heads, -1, 0])
    stacked = ir.node("Reshape", [left, stack.outputs[0]])
    nodes = [stack, unstack, stacked]
    other = kept
    if transposed:
        turned = ir.node("Transpose", [kept], {"perm": [0, 1, 3, 2]})
        nodes.append(turned)
        other = turned.outputs[0]
    product = ir.node("MatMul", [stacked.outputs[0], other])
    back = ir.node("Reshape", [product.outputs[0], unstack.outputs[0]])
    nodes += [product, back]
    new, old = back.outputs[0], node.outputs[0]
    new.shape, new.type, new.name = old.shape, old.type, old.name
    graph.insert_before(node, nodes)
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def _constant(numbers: list[int]) -> ir.Node:
    return ir.node("Constant", [], {"value": ir.tensor(numbers, dtype=ir.DataType.INT64)})


def _swaps_last_two(node: ir.Node | None) -> bool:
    return node is not None and node.op_type == "Transpose" and tuple(node.attributes["perm"].as_ints()) == (0, 1, 3, 2)


def _before_repeat(value: ir.Value | None) -> ir.Value | None:
    """The tensor whose axis 1 was repeated to make `value`, or None."""
    chain: list[ir.Value] = []
    for kind in ("Reshape", "Expand", "Unsqueeze"):
        node = value.producer() if value is not None else None
        if value is None or node is None or node.op_type != kind or node.graph is None:
            return None
        chain.append(value)
        value = node.inputs[0]
    reshaped, expanded, spread = chain
    if value is None or any(v.shape is None for v in (value, *chain)):
        return None
    ranks = [len(v.shape) for v in (value, spread, expanded, reshaped) if v.shape is not None]
    if ranks != [4, 5, 5, 4] or _size(spread, 2) != 1 or _size(spread, 1) != _size(value, 1):
        return None
    grown = [axis for axis in (0, 1, 3, 4) if _size(spread, axis) == 1 and _size(expanded, axis) != 1]
    heads, group, result = _size(value, 1), _size(expanded, 2), _size(reshaped, 1)
    return value if not grown and heads > 0 and group > 0 and heads * group == result else None


def _has_heads(value: ir.Value, heads: int) -> bool:
    return value.shape is not None and len(value.shape) == 4 and heads > 0 and _size(value, 1) == heads


def _size(value: ir.Value, axis: int) -> int:
    """The size of an axis, or -1 where it is no number."""
    size = value.shape[axis] if value.shape is not None else None
    return size if isinstance(size, int) else -1
