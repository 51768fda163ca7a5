"""Which state a graph may keep in one buffer, so that its new value is written over the old one.

ONNX Runtime runs a node after the nodes that it depends on, in an order of its own otherwise, and does not know that two
ports share memory. So the old value must not be read by anything that may run after the new one is written.
"""

from __future__ import annotations

import onnx_ir as ir

from ...artifact.spec import ComponentSpec

__all__ = ["prove_in_place"]

# Their outputs may lie on their input's memory, so who reads the output reads the input.
_VIEWS = {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}

# They read no values, only the shape, which stays.
_SHAPE_ONLY = {"Shape", "Size"}

# ONNX Runtime's CPU and CUDA kernels declare `MayInplace(0, 0)` for these: element by element, nothing read after its
# write. The elementwise ones also take it as their second input.
_IN_PLACE_FIRST = {"ScatterND", "ScatterElements", "TensorScatter"}
_IN_PLACE_ANY = {"Add", "Sub", "Mul", "Div"}


def prove_in_place(model: ir.Model, spec: ComponentSpec) -> tuple[str, ...]:
    """Names of the state inputs whose pair may share one buffer, for `ComponentSpec.options["in_place"]`.

    A pair is proved if both sides have the same shape and dtype, and every node that reads the old value either comes
    before the node that writes the new one (the writer depends on it), or is that node and works in place. Reads from
    inside a subgraph prove nothing.

    Args:
        model: The final graph, with the spec's port names.
        spec: The border.
    """
    inputs = {tensor.name: tensor for tensor in spec.inputs}
    outputs = {tensor.name: tensor for tensor in spec.outputs}
    sources = {value.name: value for value in model.graph.inputs}
    targets = {value.name: value for value in model.graph.outputs}
    return tuple(
        old
        for old, new in spec.state
        if (inputs[old].shape, inputs[old].dtype) == (outputs[new].shape, outputs[new].dtype)
        and _is_safe(sources[inputs[old].port], targets[outputs[new].port], model.graph)
    )


def _is_safe(old: ir.Value, new: ir.Value, graph: ir.Graph) -> bool:
    writer = new.producer()
    if writer is None:
        return False
    before: set[ir.Node] | None = None
    aliases, seen = [old], {old}
    while aliases:
        alias = aliases.pop()
        for node, position in alias.uses():
            if node.op_type in _SHAPE_ONLY:
                continue
            if node is writer:
                if not _writes_in_place(node, position, seen):
                    return False
                continue
            if node.graph is not graph:
                return False
            before = _ancestors(writer) if before is None else before
            if node not in before:
                return False
            if node.op_type in _VIEWS and node.outputs[0] not in seen:
                seen.add(node.outputs[0])
                aliases.append(node.outputs[0])
    return True


def _writes_in_place(node: ir.Node, position: int, aliases: set[ir.Value]) -> bool:
    if node.op_type in _VIEWS:
        return position == 0
    if node.op_type in _IN_PLACE_ANY:
        return True
    alone = sum(value in aliases for value in node.inputs) == 1
    return node.op_type in _IN_PLACE_FIRST and position == 0 and alone


def _ancestors(node: ir.Node) -> set[ir.Node]:
    """Every node that must have run before `node`, those that its subgraphs need included."""
    found: set[ir.Node] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        for value in _reads(current):
            producer = value.producer()
            if producer is not None and producer not in found:
                found.add(producer)
                pending.append(producer)
    return found


def _reads(node: ir.Node) -> list[ir.Value]:
    values = [value for value in node.inputs if value is not None]
    for attribute in node.attributes.values():
        graphs = (
            [attribute.value]
            if attribute.type == ir.AttributeType.GRAPH
            else attribute.value
            if attribute.type == ir.AttributeType.GRAPHS
            else []
        )
        for graph in graphs:
            for inner in graph:
                values.extend(_reads(inner))
    return values
