"""Write a root-mean-square norm as a division, one node shorter, which runtimes recognise and fuse."""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["apply"]


def apply(graph: ir.Graph) -> int:
    """`Mul(x, Reciprocal(Sqrt(v)))` → `Div(x, Sqrt(v))`.

    torch's `rsqrt` becomes Reciprocal(Sqrt); ONNX Runtime's SimplifiedLayerNormFusion looks for Div(x, Sqrt). Does not fire
    where the reciprocal has other readers.
    """
    changed = 0
    for node in list(graph):
        if node.op_type != "Mul" or node.domain:
            continue
        for position, factor in enumerate(node.inputs):
            inverse = factor.producer() if factor is not None else None
            if inverse is None or inverse.op_type != "Reciprocal" or inverse.graph is not graph:
                continue
            root = inverse.inputs[0].producer() if inverse.inputs[0] is not None else None
            alone = len(inverse.outputs[0].uses()) == 1 and not inverse.outputs[0].is_graph_output()
            if root is None or root.op_type != "Sqrt" or not alone:
                continue
            _divide(graph, node, node.inputs[1 - position], inverse.inputs[0])
            changed += 1
            break
    return changed


def _divide(graph: ir.Graph, node: ir.Node, numerator: ir.Value | None, denominator: ir.Value | None) -> None:
    division = ir.node("Div", [numerator, denominator])
    new, old = division.outputs[0], node.outputs[0]
    new.shape, new.type, new.name = old.shape, old.type, old.name
    graph.insert_before(node, division)
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    graph.remove(node, safe=True)
