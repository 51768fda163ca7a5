"""Only tensors cross a program's border."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import Node


def drop_constants(program: ExportedProgram) -> int:
    """Remove flags and None from the inputs and outputs of an edge program, in place; returns how many.

    They are baked into the graph (the spec keeps them as constants); the runtime would still count them as arguments.
    """
    signature = program.graph_signature
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    constant_inputs = [
        spec
        for spec in signature.input_specs
        if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, ConstantArgument)
    ]
    for spec in constant_inputs:
        node = placeholders[spec.arg.name]
        if not node.users:
            program.graph.erase_node(node)
            signature.input_specs.remove(spec)
    output = program.graph.output_node()
    kept = [
        (value, spec)
        for value, spec in zip(output.args[0], signature.output_specs, strict=True)
        if isinstance(value, Node) or spec.kind != OutputKind.USER_OUTPUT
    ]
    dropped = len(signature.output_specs) - len(kept)
    output.args = (tuple(value for value, _ in kept),)
    signature.output_specs[:] = [spec for _, spec in kept]
    program.graph_module.recompile()
    return len(constant_inputs) + dropped
