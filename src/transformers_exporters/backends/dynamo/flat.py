"""Give a program a flat border, so that it runs where the model's own classes are not importable."""

from __future__ import annotations

import copy
import dataclasses

import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind


def flat_call(program: ExportedProgram) -> ExportedProgram:
    """A program over the same graph that takes its user inputs as positional leaves and returns a tuple of leaves."""
    count_in = sum(spec.kind == InputKind.USER_INPUT for spec in program.graph_signature.input_specs)
    count_out = sum(spec.kind == OutputKind.USER_OUTPUT for spec in program.graph_signature.output_specs)
    in_spec = pytree.tree_structure((tuple(range(count_in)), {}))
    out_spec = pytree.tree_structure(tuple(range(count_out)))
    flat = copy.copy(program)
    graph_module = copy.deepcopy(program.graph_module)
    flat._graph_module = graph_module
    entries = list(program.module_call_graph)
    signature = entries[0].signature
    assert signature is not None
    entries[0] = dataclasses.replace(
        entries[0], signature=dataclasses.replace(signature, in_spec=in_spec, out_spec=out_spec, forward_arg_names=None)
    )
    flat._module_call_graph = entries
    if program.example_inputs is not None:
        flat._example_inputs = (tuple(pytree.tree_leaves(program.example_inputs)), {})
    return flat
