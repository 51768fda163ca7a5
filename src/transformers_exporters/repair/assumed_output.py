"""The assertions of assumed answers as one more output of the graph, for engines that have no assertions."""

from __future__ import annotations

import dataclasses

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.fx import Node

from ..artifact.spec import TensorSpec
from ..runtime.assumed import MARK, OUTPUT
from ..trace.record import Traced

_aten = torch.ops.aten
_ASSERT = _aten._assert_async.msg


def is_assumed(node: Node) -> bool:
    """Whether a node asserts an answer that the trace assumed; see `trace.assumptions`."""
    return node.op == "call_function" and node.target is _ASSERT and str(node.args[1]).startswith(MARK)


def return_assumed(traced: Traced) -> Traced:
    """The component with the output `assumptions_hold`, where its graph assumes something. Changes the program."""
    program = traced.program
    asserted = [node for node in program.graph.nodes if is_assumed(node)]
    if not asserted:
        return traced
    answers: list[Node] = [node.all_input_nodes[0] for node in asserted]
    *_, end = program.graph.nodes
    with program.graph.inserting_before(end):
        holds = answers[0]
        for answer in answers[1:]:
            both = program.graph.call_function(_aten.logical_and.default, (holds, answer))
            both.meta = {**answer.meta}
            holds = both
    for node in asserted:
        program.graph.erase_node(node)
    end.args = ((*end.args[0], holds),)
    _add_output(program, holds.name)
    program.graph_module.recompile()
    output = TensorSpec(OUTPUT, OUTPUT, "bool", ())
    return dataclasses.replace(traced, spec=dataclasses.replace(traced.spec, outputs=(*traced.spec.outputs, output)))


def _add_output(program: ExportedProgram, name: str) -> None:
    signature = program.graph_signature
    added = OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name), None)
    program._graph_signature = dataclasses.replace(signature, output_specs=[*signature.output_specs, added])
    entry, *others = program.module_call_graph
    assert entry.signature is not None and entry.signature.out_spec is not None
    both = pytree.treespec_tuple([entry.signature.out_spec, pytree.treespec_leaf()])
    border = dataclasses.replace(entry.signature, out_spec=both)
    program._module_call_graph = [dataclasses.replace(entry, signature=border), *others]
