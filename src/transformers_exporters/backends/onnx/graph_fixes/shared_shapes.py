"""Read each size once: layers ask the same sizes of different tensors, and no runtime knows that they are equal."""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["apply"]


def apply(graph: ir.Graph) -> int:
    """Replace a Shape whose sizes, by the tracer's names, another Shape before it has read, or that are all numbers.

    Two axes of one name are equal by the trace's guards. Sizes that the tracer did not name are left alone.
    """
    first: dict[tuple[object, ...], ir.Value] = {}
    changed = 0
    for node in list(graph):
        if node.op_type != "Shape" or node.domain:
            continue
        sizes = _sizes(node)
        if sizes is None:
            continue
        if all(isinstance(size, int) for size in sizes):
            constant = ir.node(
                "Constant", [], {"value": ir.tensor([int(str(size)) for size in sizes], dtype=ir.DataType.INT64)}
            )
            graph.insert_before(node, constant)
            replacement = constant.outputs[0]
        elif sizes not in first:
            first[sizes] = node.outputs[0]
            continue
        else:
            replacement = first[sizes]
        ir.convenience.replace_all_uses_with(node.outputs[0], replacement, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        changed += 1
    return changed


def _sizes(node: ir.Node) -> tuple[object, ...] | None:
    source = node.inputs[0]
    if source is None or source.shape is None or node.outputs[0].is_graph_output():
        return None
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(source.shape))
    sizes = tuple(size if isinstance(size, int) else size.value for size in source.shape[start:end])
    return None if any(size is None for size in sizes) else sizes
