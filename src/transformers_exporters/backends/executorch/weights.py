"""Weights of a traced program: new ones, and those that its graph computes from others."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node
from torch.fx.node import map_arg

from ...trace.graph_state import held_tensor, program_inputs
from ...trace.weights import HELD

#: Computed weights are in memory, where others may lie in a checkpoint's file.
_MOST_BYTES = 1 << 30


def add_weight(program: ExportedProgram, name: str, value: torch.Tensor) -> Node:
    """A parameter in front of all other inputs, called `name`, which no other weight may be.

    Args:
        program: A traced program. Changed in place.
        name: As in a state dict.
        value: What it holds, by reference.
    """
    first = next(iter(program.graph.nodes))
    with program.graph.inserting_before(first):  # by the name that torch would give it
        node = program.graph.placeholder(f"p_{name.lower().replace('.', '_')}")
    mode: Any = detect_fake_mode([n.meta["val"] for n in program.graph.find_nodes(op="placeholder") if n is not node])
    node.meta["val"] = mode.from_tensor(value, static_shapes=True)
    program.state_dict[name] = torch.nn.Parameter(value.detach(), requires_grad=False)
    program.graph_signature.input_specs.insert(0, InputSpec(InputKind.PARAMETER, TensorArgument(node.name), name))
    return node


def compute_weights(program: ExportedProgram) -> int:
    """Compute once what is computed from weights alone; returns how many new weights there are.

    A weight norm makes the weight of a convolution from two others at each call, and a delegate takes no weight that is
    computed. Nothing grows by it: a result takes the place of weights that nobody else reads and that are no smaller.
    What a quantized weight stands for stays computed by that, and weights without values (`meta`) are left alone.

    Args:
        program: A traced program. Changed in place.
    """
    weights = _weights(program)
    known: dict[Node, frozenset[Node]] = {node: frozenset([node]) for node in weights}
    for node in program.graph.nodes:
        if node.op == "call_function" and (sources := _sources(node, known)):
            known[node] = sources
    results = [n for n in known if n not in weights and any(user not in known for user in n.users)]
    kept = {w for w in weights if any(user not in known for user in w.users)}
    kept |= {source for node in results if not _is_no_larger(node, known[node]) for source in known[node]}
    computed = [node for node in results if _is_no_larger(node, known[node]) and not known[node] & kept]
    if sum(node.meta["val"].nbytes for node in computed) > _MOST_BYTES:
        return 0
    values: dict[Node, torch.Tensor] = {}
    computed = [node for node in computed if not _has_tiny(_value(node, weights, values))]
    for number, node in enumerate(computed):
        names = sorted(str(spec.target) for source, spec in program_inputs(program) if source in known[node])
        # Memory of its own: of a view, executorch writes what the memory begins with (the first expert for every one).
        value = _value(node, weights, values).clone(memory_format=torch.contiguous_format)
        made = add_weight(program, f"{names[0]}_computed_{number}", value)
        node.replace_all_uses_with(made)
    program.graph.eliminate_dead_code()
    return len(computed)


def _weights(program: ExportedProgram) -> dict[Node, torch.Tensor]:
    """The tensors that the program holds and nobody writes into, by placeholder."""
    written = {
        *program.graph_signature.buffers_to_mutate.values(),
        *program.graph_signature.parameters_to_mutate.values(),
    }
    found = {}
    for node, spec in program_inputs(program):
        if spec.kind in HELD and spec.target not in written and not any(map(_writes, node.users)):
            tensor = held_tensor(program, spec)
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                found[node] = tensor
    return found


def _writes(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _sources(node: Node, known: dict[Node, frozenset[Node]]) -> frozenset[Node]:
    """The weights that a result is computed from; none where it is from something else too, or is not the same each time."""
    inputs = node.all_input_nodes
    if not inputs or not all(each in known for each in inputs) or not isinstance(node.meta.get("val"), torch.Tensor):
        return frozenset()
    if not isinstance(node.target, OpOverload) or _writes(node) or any(map(_writes, node.users)):
        return frozenset()
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return frozenset()
    return frozenset().union(*(known[each] for each in inputs))


def _is_no_larger(node: Node, sources: frozenset[Node]) -> bool:
    value: Any = node.meta["val"]
    return value.nbytes <= sum(source.meta["val"].nbytes for source in sources)


def _has_tiny(value: torch.Tensor) -> bool:
    """Whether some numbers are below the smallest normal one, for 0 to XNNPACK: the scales of an integer-only I-BERT."""
    if not value.is_floating_point():
        return False
    return bool(((value != 0) & (value.abs() < torch.finfo(value.dtype).tiny)).any())


def _value(node: Node, weights: dict[Node, torch.Tensor], values: dict[Node, torch.Tensor]) -> torch.Tensor:
    if node in weights:
        return weights[node].detach()
    if node not in values:
        args, kwargs = map_arg((node.args, node.kwargs), lambda each: _value(each, weights, values))
        target: Any = node.target
        with torch.no_grad():
            values[node] = target(*args, **kwargs)
    return values[node]
