"""Give an ONNX graph's inputs, outputs and axes the names of the component's spec."""

from __future__ import annotations

import onnx_ir as ir

from ...artifact.spec import ComponentSpec, TensorSpec
from ...errors import LoweringError


def name_values(model: ir.Model, spec: ComponentSpec) -> None:
    """Rename in place. Inputs that the converter made of constants are removed, so that ports are tensors only.

    An output that is an input, an initialiser, or the same value as another output gets an Identity of its own.
    """
    graph = model.graph
    tensors = [value for value in graph.inputs if value.type is not None]
    if len(tensors) != len(spec.inputs):
        tensors = [value for value in tensors if value.uses() or value.shape is not None]
    if len(tensors) != len(spec.inputs) or len(graph.outputs) < len(spec.outputs):
        raise LoweringError(
            f"{spec.name!r}: the converter made {len(tensors)} inputs and {len(graph.outputs)} outputs "
            f"of {len(spec.inputs)} and {len(spec.outputs)}."
        )
    graph.inputs[:] = tensors
    _free_names(graph, {tensor.port for tensor in (*spec.inputs, *spec.outputs)})
    seen: set[int] = set()
    taken = set(map(id, graph.inputs)) | set(map(id, graph.initializers.values()))
    for index, tensor in enumerate(spec.outputs):
        value = graph.outputs[index]
        if id(value) in seen or id(value) in taken or value.producer() is None:
            node = ir.node("Identity", [value])
            node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
            graph.append(node)
            value = graph.outputs[index] = node.outputs[0]
        seen.add(id(value))
        _describe(value, tensor)
    for value, tensor in zip(graph.inputs, spec.inputs, strict=True):
        _check_axes(value, tensor, spec)
        _describe(value, tensor)


def _check_axes(value: ir.Value, tensor: TensorSpec, spec: ComponentSpec) -> None:
    """Raise where the converter fixed an axis that the trace left open: the graph would be wrong at other sizes."""
    for position, (size, name) in enumerate(zip(value.shape or (), tensor.shape, strict=False)):
        if isinstance(size, int) and not isinstance(name, int):
            raise LoweringError(
                f"{spec.name!r}: torch.onnx fixed axis {position} of {tensor.name!r} ({name!r}) at {size}; "
                "export with another size of that axis."
            )


def _free_names(graph: ir.Graph, wanted: set[str]) -> None:
    """Rename every inner value that already has one of the wanted names."""
    border = {*graph.inputs, *graph.outputs}
    for node in ir.traversal.RecursiveGraphIterator(graph):
        for value in node.outputs:
            if value.name in wanted and value not in border:
                value.name = f"{value.name}_inner"
    for number, value in enumerate(border):
        value.name = f"border_{number}"


def _describe(value: ir.Value, tensor: TensorSpec) -> None:
    value.name = tensor.port
    value.shape = ir.Shape(list(tensor.shape))
