"""A traced program as a plain `GraphModule` and back, for tools that rewrite graph modules (quantizers).

The way back traces nothing again: nodes that the tool added are computed under the trace's own fake tensors, so names, axes
and symbols stay what they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputSpec,
    TensorArgument,
)
from torch.func import functional_call
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from ..errors import TraceError, UnsupportedModelError
from ..prepare.references import has_values
from .graph_state import GraphState, held_tensor, program_inputs
from .record import Traced
from .weights import weight_refs


def as_graph_module(traced: Traced) -> GraphModule:
    """The graph with its weights as attributes.

    It takes the tensors of the spec's inputs by position, and returns what the program does, updated inputs included.

    Raises:
        UnsupportedModelError: If a weight has no values.
    """
    program = traced.program
    for name, reference in traced.weights.items():
        if not has_values(reference):
            raise UnsupportedModelError(
                f"The weight {name} has no values (it is on the meta device): load the checkpoint before quantizing."
            )
    root = torch.nn.Module()
    graph, copies = Graph(), dict[Node, Any]()
    for node, spec in program_inputs(program):
        if spec.kind is InputKind.USER_INPUT:
            continue
        attribute = f"held_{len(copies)}"
        _attach(root, attribute, held_tensor(program, spec))
        copies[node] = graph.get_attr(attribute)
        copies[node].meta = dict(node.meta)
    for node, spec in program_inputs(program):
        if spec.kind is InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument):
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
        elif spec.kind is InputKind.USER_INPUT:
            copies[node] = spec.arg.value  # type: ignore[union-attr]
    for node in program.graph.nodes:
        if node.op != "placeholder":
            if node.op == "get_attr":
                setattr(root, node.target, getattr(program.graph_module, node.target))
            copies[node] = graph.node_copy(node, lambda n: copies[n])
    made = GraphModule(root, graph)
    made.meta.update(program.graph_module.meta)
    return made.eval()


def from_graph_module(traced: Traced, module: GraphModule) -> Traced:
    """A component whose graph is the rewritten `module` of `as_graph_module(traced)`.

    Args:
        traced: The component; it is not changed.
        module: Has the same inputs and outputs, in the same order.

    Raises:
        TraceError: If inputs or outputs are others.
    """
    program = traced.program
    mode = _fake_mode(program)
    graph, root = Graph(), torch.nn.Module()
    state = GraphState(program, graph, mode)
    copies: dict[Node, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr" and node.users and isinstance(value := _attribute(module, node), torch.Tensor):
            copies[node] = state.add(str(node.target), value)
        elif node.op == "call_module":
            for name, value in _tensors(module.get_submodule(str(node.target))).items():
                state.add(f"{node.target}.{name}", value)
    specs = list(state.specs)
    specs += _user_inputs(program, module, graph, copies)
    for node in module.graph.nodes:
        if node not in copies and node.op != "output" and (node.users or node.is_impure()):
            if node.op == "call_module":
                copies[node] = _inlined(module.get_submodule(str(node.target)), node, graph, copies, state)
                continue
            if node.op == "get_attr":
                setattr(root, node.target, _attribute(module, node))
            copies[node] = graph.node_copy(node, lambda n: copies[n])
            _set_value(copies[node], mode)
    returned: Any = map_arg(module.graph.output_node().args[0], lambda n: copies[n])
    graph.output(tuple(returned))
    rebuilt = _program(program, root, graph, specs, _outputs(program, returned), state.state, state.constants)
    return dataclasses.replace(traced, program=rebuilt, weights=weight_refs(rebuilt))


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _inlined(called: torch.nn.Module, node: Node, graph: Graph, copies: dict[Node, Any], state: GraphState) -> Any:
    """Add what a small module computes, in aten operators, with its tensors as weights of the graph."""
    held = _tensors(called)
    given = [copies[each] for each in node.all_input_nodes]
    placeholders = [*given, *(state.nodes[id(tensor)] for tensor in held.values())]

    def run(*values: Any) -> Any:
        return functional_call(called, dict(zip(held, values[len(given) :], strict=True)), values[: len(given)])

    with state.mode, enable_python_dispatcher(), torch.no_grad():
        body = make_fx(run)(*(each.meta["val"] for each in placeholders))
    inner: dict[Node, Any] = dict(
        zip((each for each in body.graph.nodes if each.op == "placeholder"), placeholders, strict=True)
    )
    for each in body.graph.nodes:
        if each.op == "call_function":
            inner[each] = graph.node_copy(each, lambda n: inner[n])
            inner[each].meta = {**node.meta, "val": each.meta["val"]}
    return map_arg(body.graph.output_node().args[0], lambda n: inner[n])


def _program(
    program: ExportedProgram,
    root: torch.nn.Module,
    graph: Graph,
    inputs: Sequence[InputSpec],
    outputs: Sequence[OutputSpec],
    state: Mapping[str, Any],
    constants: Mapping[str, Any],
) -> ExportedProgram:
    return ExportedProgram(
        root=root,
        graph=graph,
        graph_signature=ExportGraphSignature(list(inputs), list(outputs)),
        state_dict=dict(state),
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=dict(constants),
        verifiers=program.verifiers,
    )


def _attach(root: torch.nn.Module, name: str, value: Any) -> None:
    if isinstance(value, torch.nn.Parameter):
        root.register_parameter(name, value)
    elif isinstance(value, torch.Tensor):
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)


def _attribute(module: torch.nn.Module, node: Node) -> Any:
    owner, _, name = str(node.target).rpartition(".")
    return getattr(module.get_submodule(owner), name)


def _user_inputs(
    program: ExportedProgram, module: GraphModule, graph: Graph, copies: dict[Node, Any]
) -> list[InputSpec]:
    """Add the user's inputs to a new graph; returns their specs, which are the old ones."""
    placeholders = iter([node for node in module.graph.nodes if node.op == "placeholder"])
    specs: list[InputSpec] = []
    for old, spec in program_inputs(program):
        if spec.kind is not InputKind.USER_INPUT:
            continue
        held = graph.placeholder(old.name)
        held.name, held.meta = old.name, dict(old.meta)
        specs.append(spec)
        if not isinstance(spec.arg, ConstantArgument):
            node = next(placeholders, None)
            if node is None:
                raise TraceError(f"A rewritten graph lost the input {old.name}; report this to the rewriting tool.")
            copies[node] = held
    return specs


def _outputs(program: ExportedProgram, returned: Any) -> list[OutputSpec]:
    old = program.graph_signature.output_specs
    values = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(values) != len(old):
        raise TraceError(f"A rewritten graph returns {len(values)} values in the place of {len(old)}.")
    return [
        dataclasses.replace(spec, arg=TensorArgument(value.name))
        if isinstance(value, Node) and isinstance(spec.arg, TensorArgument)
        else spec
        for value, spec in zip(values, old, strict=True)
    ]


def _set_value(node: Node, mode: FakeTensorMode) -> None:
    """Compute a node's fake value where it has none, or a tool may have copied it from a node of another dtype."""
    target = node.target
    if node.op != "call_function" or ("val" in node.meta and getattr(target, "namespace", "aten") == "aten"):
        return
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    with mode, enable_python_dispatcher(), torch.no_grad():
        node.meta["val"] = target(*args, **kwargs)  # type: ignore[operator]


def _fake_mode(program: ExportedProgram) -> FakeTensorMode:
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    mode = detect_fake_mode([value for value in values if isinstance(value, torch.Tensor)])
    if not isinstance(mode, FakeTensorMode):
        raise TraceError("The traced graph has no fake tensors.")
    return mode
