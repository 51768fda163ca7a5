"""Rotary embeddings: move the minus sign of `rotate_half` from every layer's queries and keys to the sine, once."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

__all__ = ["apply"]


def apply(graph: ir.Graph) -> int:
    """`Mul(Concat(Neg(a), b), sine)` → `Mul(Concat(a, b), Mul(sine, [-1, ..., 1, ...]))` along the last axis.

    The same bits: a sign commutes with a product. The signed sine is one value for all layers after common subexpressions
    are shared. Does not fire where the halves' sizes are unknown, or the concatenation or the Neg has other readers.
    """
    changed = 0
    for node in list(graph):
        if node.op_type != "Mul" or node.domain:
            continue
        for position, turned in enumerate(node.inputs):
            joined = turned.producer() if turned is not None else None
            sine = node.inputs[1 - position]
            halves = _halves(joined) if joined is not None and joined.graph is graph else None
            if joined is None or halves is None or sine is None or sine.dtype is None:
                continue
            _move_sign(graph, node, position, joined, sine, halves)
            changed += 1
            break
    return changed


def _halves(joined: ir.Node) -> tuple[int, int] | None:
    if joined.op_type != "Concat" or len(joined.inputs) != 2 or len(joined.outputs[0].uses()) != 1:
        return None
    first, second = joined.inputs
    negation = first.producer() if first is not None else None
    if negation is None or negation.op_type != "Neg" or len(negation.outputs[0].uses()) != 1:
        return None
    if first is None or second is None or first.shape is None or second.shape is None:
        return None
    sizes = first.shape[-1], second.shape[-1]
    last = joined.attributes["axis"].as_int() in (-1, len(first.shape) - 1)
    return sizes if last and isinstance(sizes[0], int) and isinstance(sizes[1], int) else None  # type: ignore[return-value]


def _move_sign(
    graph: ir.Graph, node: ir.Node, position: int, joined: ir.Node, sine: ir.Value, halves: tuple[int, int]
) -> None:
    assert sine.dtype is not None and joined.inputs[0] is not None
    signs = np.concatenate([-np.ones(halves[0]), np.ones(halves[1])]).astype(sine.dtype.numpy())
    constant = ir.node("Constant", [], {"value": ir.tensor(signs, dtype=sine.dtype)})
    signed = ir.node("Mul", [sine, constant.outputs[0]])
    signed.outputs[0].shape, signed.outputs[0].type = sine.shape, sine.type
    negation = joined.inputs[0].producer()
    assert negation is not None
    plain = ir.node("Concat", [negation.inputs[0], joined.inputs[1]], {"axis": -1})
    plain.outputs[0].shape, plain.outputs[0].type = joined.outputs[0].shape, joined.outputs[0].type
    graph.insert_before(node, [constant, signed, plain])
    node.replace_input_with(position, plain.outputs[0])
    node.replace_input_with(1 - position, signed.outputs[0])
    graph.remove([joined, negation], safe=True)
