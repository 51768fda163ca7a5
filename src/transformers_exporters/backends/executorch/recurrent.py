"""Recurrent layers over any number of steps: a loop of the runtime around one step.

A layer becomes one product of all its inputs with their weights, which a delegate takes, and `recurrent_steps`, which stays
whole until the delegates have their parts. Then it is `torch.scan`, which executorch emits as a loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from executorch.exir.dialects._ops import ops
from executorch.exir.emit._emitter import _Emitter
from executorch.exir.schema import EValue, Instruction, Int, KernelCall
from torch import Tensor
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.nn import functional as F

from ...repair.decompositions.recurrent import gru_state, lstm_states
from ...repair.inline import inline, substitute
from .insertion import replace

_aten = torch.ops.aten


def _lstm(gates: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    hidden, cell = lstm_states(gates + states[0] @ weights[0], states[1])
    return [hidden @ weights[1] if len(weights) > 1 else hidden, cell]


def _gru(gates: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    between = states[0] @ weights[0]
    return [gru_state(gates, between + weights[1] if len(weights) > 1 else between, states[0])]


def _plain(function: Callable[[Tensor], Tensor], gates: Tensor, states: Any, weights: Any) -> list[Tensor]:
    return [function(gates + states[0] @ weights[0])]


#: One step by its layer's name: gates [batch, gates * size], states and weights as `recurrent_steps` takes them.
_CELLS: dict[str, Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], list[Tensor]]] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": functools.partial(_plain, torch.tanh),
    "rnn_relu": functools.partial(_plain, torch.relu),
}
_LAYERS = {getattr(_aten, name).input: name for name in _CELLS}


@torch.library.custom_op("transformers_exporters::recurrent_steps", mutates_args=())
def recurrent_steps(gates: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], cell: str) -> list[Tensor]:
    """Run a recurrent cell over all steps.

    Args:
        gates: [steps, batch, gates * size], what the inputs say of the gates.
        states: Before the first step, [batch, size] each: the hidden state, and an LSTM's cell state.
        weights: [size, gates * size], from state to gates; then a GRU's bias for that, or an LSTM's projection [cell, size].
        cell: The kind of layer.

    Returns:
        The hidden states after each step, [steps, batch, size], and the states after the last.
    """
    now, outputs = list(states), []
    for step in gates:
        now = _CELLS[cell](step, now, weights)
        outputs.append(now[0])
    return [torch.stack(outputs), *(state.clone() for state in now)]


@recurrent_steps.register_fake
def _fake(gates: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], cell: str) -> list[Tensor]:
    return [gates.new_empty((gates.shape[0], *states[0].shape)), *(torch.empty_like(state) for state in states)]


RECURRENT_STEPS: Any = torch.ops.transformers_exporters.recurrent_steps.default


def layers_as_steps(program: ExportedProgram) -> int:
    """Write recurrent layers with `recurrent_steps`; returns how many."""
    nodes = [node for node in program.graph.nodes if node.target in _LAYERS]
    for node in nodes:
        layer: Any = node.target
        made = inline(node, functools.partial(_layers, _LAYERS[layer]), node.args, node.kwargs)
        substitute(node, made)
    return len(nodes)


def _layers(
    cell: str,
    inputs: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Tensor]:
    """`aten.lstm.input` and its like, in evaluation: states are [layers * directions, batch, size] each."""
    states = list(hx) if cell == "lstm" else [hx]
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    steps = inputs.transpose(0, 1) if batch_first else inputs
    finals: list[list[Tensor]] = [[] for _ in states]
    for layer in range(num_layers):
        found = []
        for way in range(directions):
            at = layer * directions + way
            own = params[at * each : (at + 1) * each]
            outputs, *last = _one_way(cell, steps, [state[at] for state in states], own, has_biases, way == 1)
            found.append(outputs)
            for final, state in zip(finals, last, strict=True):
                final.append(state)
        steps = torch.cat(found, dim=-1) if bidirectional else found[0]
    return [steps.transpose(0, 1) if batch_first else steps, *(torch.stack(final) for final in finals)]


def _one_way(
    cell: str, steps: Tensor, states: list[Tensor], own: Sequence[Tensor], biased: bool, backwards: bool
) -> list[Tensor]:
    into, between, *rest = own
    biases, projection = (rest[:2], rest[2:]) if biased else ([], rest)
    weights = [between.t(), *(each.t() for each in projection)]
    bias = biases[0] if biased else None
    if biased and cell == "gru":
        weights.append(biases[1])
    elif biased:
        bias = biases[0] + biases[1]
    gates = F.linear(steps, into, bias)
    outputs, *last = RECURRENT_STEPS(gates.flip(0) if backwards else gates, states, weights, cell)
    return [outputs.flip(0) if backwards else outputs, *last]


def steps_as_scans(program: ExportedProgram) -> int:
    """Write `recurrent_steps` of an edge program as `torch.scan`; returns how many."""
    module = program.graph_module
    nodes = [node for node in module.graph.nodes if getattr(node.target, "_op", None) is RECURRENT_STEPS]
    for number, node in enumerate(nodes):
        _as_scan(module, node, f"recurrent_step_{number}")
    return len(nodes)


def _as_scan(module: GraphModule, node: Node, name: str) -> None:
    gates, states, weights, cell = node.args
    values = map_arg([states, gates, weights], lambda n: n.meta["val"])
    setattr(module, name, _step(str(cell), *values))
    outputs, *last = node.meta["val"]
    with module.graph.inserting_before(node):
        body = module.graph.get_attr(name)
        scan = module.graph.call_function(torch.ops.higher_order.scan, (body, states, [gates], tuple(weights)))
    scan.meta = {**node.meta, "val": [*last, outputs]}
    for user in list(node.users):  # getitem
        user.args = (node, (user.args[1] - 1) % len(scan.meta["val"]))
    replace(node, scan)


def _step(cell: str, states: Sequence[Tensor], gates: Tensor, weights: Sequence[Tensor]) -> GraphModule:
    """One step in the edge dialect: states, a step's gates and weights to the next states and the output."""

    def step(*values: Tensor) -> list[Tensor]:
        after = _CELLS[cell](values[len(states)], values[: len(states)], values[len(states) + 1 :])
        return [*after, after[0].clone()]

    mode: Any = detect_fake_mode(gates)
    with mode, torch.no_grad():
        given = [tensor.new_empty(tensor.shape) for tensor in (*states, gates[0], *weights)]
        module = make_fx(step)(*given)
    for node in module.graph.nodes:
        if isinstance(node.target, OpOverload):
            node.target = getattr(getattr(ops.edge.aten, _copying(node.target)), node.target._overloadname)
    return module


def _copying(op: OpOverload) -> str:
    """The name of an aten operator's form that makes a tensor of its own."""
    name = op._schema.name.removeprefix("aten::")
    return f"{name}_copy" if name == "slice" else name


@contextmanager
def loops_of_any_batch() -> Iterator[None]:
    """While held, a loop that is emitted gives its states and outputs the sizes that they have in the run.

    executorch (1.5.1) leaves them at the largest sizes that were planned for, but for the number of steps.
    """
    emit: Any = _Emitter._emit_scan

    @functools.wraps(emit)
    def sized(self: Any, args: Any, results: Any) -> Any:
        _, states, *_ = args
        *_, outputs = results
        axis = self._emit_evalue(EValue(Int(0)))
        operator, _ = self._get_operator("aten::unsqueeze_copy", "out")
        one_step = [states[0].id, axis.id, outputs.id, outputs.id]
        self.chain.instructions.append(Instruction(KernelCall(operator, one_step)))
        before = len(self.chain.instructions)
        made = emit(self, args, results)
        (keeping, _), (resizing, _) = self._get_operator("aten::copy_"), self._get_operator("aten::copy", "out")
        for instruction in self.chain.instructions[before:]:
            call = instruction.instr_args
            if isinstance(call, KernelCall) and call.op_index == keeping:
                _, source, blocking, target = call.args
                call.op_index, call.args = resizing, [source, source, blocking, target, target]
        return made

    with mock.patch.object(_Emitter, "_emit_scan", sized):
        yield
