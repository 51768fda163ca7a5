"""Only tensors cross a program's border."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult


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


#: Operators that write into their first argument, as executorch's in-place pass and its write-back leave them.
_UPDATES = (["copy_"], ["index_put_"])


@dataclass(frozen=True)
class Results:
    """What a program returns, in the runtime's order.

    Attributes:
        written: Inputs that the program updates. First come their new values (unless `in_place`), one each.
        returned: Then the outputs of the model, by place in the component's outputs.
        same: Outputs of the model that are the new value of an input and therefore are not returned a second time:
            place in the component's outputs → the input.
        in_place: The program writes into the caller's own memory, and returns no updated input at all.
    """

    written: tuple[str, ...]
    returned: tuple[int, ...]
    same: Mapping[int, str]
    in_place: bool

    def in_order(self, plan: Any, inputs: Sequence[str]) -> Results:
        """The same with `written` as the emitted plan has it: updates that were made in place move behind the others.

        Args:
            plan: The method's `ExecutionPlan`. An updated input and the output that returns it are one value in it.
            inputs: The component's input names.
        """
        names = {value: name for value, name in zip(plan.inputs, inputs, strict=True) if name in self.written}
        found = [names[value] for value in plan.outputs if value in names]
        return self if self.in_place else replace(self, written=tuple(found[: len(self.written)]))

    def as_json(self) -> dict[str, Any]:
        """For the run door."""
        return {
            "written": list(self.written),
            "returned": list(self.returned),
            "same": {str(place): name for place, name in self.same.items()},
            "in_place": self.in_place,
        }


def order_input_specs(program: ExportedProgram) -> ExportedProgram:
    """The program, with the input specs of its signature in the order of its placeholders.

    executorch 1.5.1 puts a lifted constant before the first input that is a tensor, and its spec before the first input of
    any kind: Whisper's encoder takes `output_attentions=None` first.
    """
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    placeholders = program.graph.find_nodes(op="placeholder")
    program.graph_signature.input_specs[:] = [specs[node.name] for node in placeholders]
    return program


def arrange_results(program: ExportedProgram, inputs: Mapping[str, str], in_place: bool) -> Results:
    """Return every value once. Edits the outputs of an edge program.

    Args:
        program: The edge program, constants already dropped.
        inputs: The component's input name of each placeholder.
        in_place: See `Results`.
    """
    signature, output = program.graph_signature, program.graph.output_node()
    pairs = list(zip(output.args[0], signature.output_specs, strict=True))
    written = {value: spec.target for value, spec in pairs if spec.kind == OutputKind.USER_INPUT_MUTATION}
    user = [(value, spec) for value, spec in pairs if spec.kind == OutputKind.USER_OUTPUT]
    same = {place: inputs[written[value]] for place, (value, _) in enumerate(user) if value in written}
    kept = [pair for pair in pairs if pair[1].kind != OutputKind.USER_OUTPUT]
    kept += [pair for place, pair in enumerate(user) if place not in same]
    output.args = (tuple(value for value, _ in kept),)
    signature.output_specs[:] = [spec for _, spec in kept]
    program.graph_module.recompile()
    names = tuple(inputs[spec.target] for _, spec in pairs if spec.kind == OutputKind.USER_INPUT_MUTATION)
    returned = tuple(place for place in range(len(user)) if place not in same)
    return Results(names, returned, same, in_place and bool(names))


def without_written_inputs(graph_module: GraphModule) -> PassResult:
    """Take the updated inputs out of a program's outputs; the update itself stays.

    The runtime gives an updated input and the output that returns it one value. Where the caller owns the input's
    memory, its Python binding then replaces that memory by an output buffer of its own: later calls neither read the
    caller's tensor nor write to it, and the state of one generation leaks into the next (executorch 1.5.1).
    """
    output = graph_module.graph.output_node()
    kept = [value for value in output.args[0] if not _writes_input(value)]
    changed = len(kept) != len(output.args[0])
    output.args = (tuple(kept),)
    graph_module.recompile()
    return PassResult(graph_module, changed)


def _writes_input(node: Node) -> bool:
    """Whether a node is the last of a chain of updates in place that starts at an input."""
    at: Any = node
    while at.op == "call_function" and getattr(at.target, "__name__", "").split(".")[-2:-1] in _UPDATES:
        at = at.args[0]
        if at.op == "placeholder":
            return True
    return False
