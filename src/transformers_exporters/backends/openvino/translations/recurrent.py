"""`nn.LSTM`, `nn.GRU` and `nn.RNN` as OpenVINO's sequence operations, over any number of steps."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, constant, shape_of

# The gates in OpenVINO's order, as places in torch's: torch has i f g o (LSTM) and r z n (GRU).
_LSTM_GATES = (1, 0, 2, 3)
_GRU_GATES = (1, 0, 2)
_RNN_GATES = (0,)


def _lstm(call: Call) -> list[Output]:
    """float [batch, steps, size] (or steps first) -> the steps' outputs, the last hidden and the last cell states."""
    hidden, cell = call["hx"]
    return _layers(call, [hidden, cell], _LSTM_GATES)


def _gru(call: Call) -> list[Output]:
    """float [batch, steps, size] (or steps first) -> the steps' outputs and the last hidden states."""
    return _layers(call, [call["hx"]], _GRU_GATES)


def _rnn(activation: str, call: Call) -> list[Output]:
    """As `_gru`."""
    return _layers(call, [call["hx"]], _RNN_GATES, activation)


def _layers(call: Call, states: Sequence[Output], gates: Sequence[int], activation: str = "tanh") -> list[Output]:
    """Args: states: float [layers * directions, batch, hidden] each."""
    params, biases = list(call["params"]), call["has_biases"]
    hidden = int(call.traced_item("params", 1).shape[1])
    directions = 2 if call["bidirectional"] else 1
    count = (4 if biases else 2) * directions
    if len(params) != count * call["num_layers"]:
        raise NotImplementedError("a recurrent layer with projections")
    steps = call["input"]
    if not call["batch_first"]:
        steps = _swapped(steps, (1, 0, 2))
    finals: list[list[Output]] = [[] for _ in states]
    for layer in range(call["num_layers"]):
        own = [_swapped(_part(state, layer * directions, directions), (1, 0, 2)) for state in states]
        weights = params[layer * count : (layer + 1) * count]
        steps, last = _sequence(steps, own, weights, gates, biases, hidden, activation)
        for found, state in zip(finals, last, strict=True):
            found.append(_swapped(state, (1, 0, 2)))
    if not call["batch_first"]:
        steps = _swapped(steps, (1, 0, 2))
    return [steps, *(ops.concat(found, 0).output(0) for found in finals)]


def _sequence(
    steps: Output,
    states: list[Output],
    params: list[Output],
    gates: Sequence[int],
    biases: bool,
    hidden: int,
    activation: str,
) -> tuple[Output, list[Output]]:
    """One layer. steps: [batch, steps, size]; states: [batch, directions, hidden]; results in the same forms."""
    each = 4 if biases else 2
    directions = len(params) // each
    rows = [params[at * each : (at + 1) * each] for at in range(directions)]
    into, between = (_stacked([_gated(row[at], gates) for row in rows]) for at in (0, 1))
    kind = steps.get_element_type()
    if len(gates) == len(_GRU_GATES):
        # Of the last gate both biases are kept: the one between the steps is added before the reset gate multiplies.
        parts = [_gru_bias(row, gates, hidden) if biases else _zeros(4 * hidden, kind) for row in rows]
    else:
        parts = [
            ops.add(_gated(row[2], gates), _gated(row[3], gates)).output(0)
            if biases
            else _zeros(len(gates) * hidden, kind)
            for row in rows
        ]
    bias = _stacked(parts)
    lengths = ops.broadcast(_size(steps, 1), ops.unsqueeze(_size(steps, 0), constant(0, Type.i64)))
    direction = "bidirectional" if directions == 2 else "forward"
    if len(gates) == len(_GRU_GATES):
        made = ops.gru_sequence(
            steps, states[0], lengths, into, between, bias, hidden, direction, linear_before_reset=True
        )
    elif len(gates) == len(_RNN_GATES):
        made = ops.rnn_sequence(
            steps, states[0], lengths, into, between, bias, hidden, direction, activations=[activation] * directions
        )
    else:
        made = ops.lstm_sequence(steps, *states, lengths, into, between, bias, hidden, direction)
    # [batch, directions, steps, hidden] -> [batch, steps, directions * hidden]
    joined = ops.reshape(_swapped(made.output(0), (0, 2, 1, 3)), constant([0, 0, directions * hidden], Type.i64), True)
    return joined.output(0), [made.output(at + 1) for at in range(len(states))]


def _gated(value: Output, gates: Sequence[int]) -> Output:
    """[gates * hidden, ...] in OpenVINO's order of gates."""
    parts = ops.split(value, constant(0, Type.i64), len(gates)).outputs()
    return ops.concat([parts[gate] for gate in gates], 0).output(0)


def _gru_bias(row: Sequence[Output], gates: Sequence[int], hidden: int) -> Output:
    """[4 * hidden]: the sums of both biases for the first two gates, then both of the last."""
    into, between = (_gated(row[at], gates) for at in (2, 3))
    summed = _part(ops.add(into, between).output(0), 0, 2 * hidden)
    return ops.concat([summed, _part(into, 2 * hidden, hidden), _part(between, 2 * hidden, hidden)], 0).output(0)


def _zeros(size: int, kind: Type) -> Output:
    return constant([0.0] * size, kind)


def _stacked(values: Sequence[Output]) -> Output:
    zero = constant(0, Type.i64)
    return ops.concat([ops.unsqueeze(value, zero).output(0) for value in values], 0).output(0)


def _part(value: Output, start: int, count: int) -> Output:
    """`value[start : start + count]`."""
    bounds = (constant([item], Type.i64) for item in (start, start + count, 1, 0))
    return ops.slice(value, *bounds).output(0)


def _swapped(value: Output, order: Sequence[int]) -> Output:
    return ops.transpose(value, constant(list(order), Type.i64)).output(0)


def _size(value: Output, axis: int) -> Output:
    return ops.gather(shape_of(value), constant(axis, Type.i64), constant(0, Type.i64)).output(0)


TRANSLATIONS = {
    "aten.lstm.input": _lstm,
    "aten.gru.input": _gru,
    "aten.rnn_tanh.input": functools.partial(_rnn, "tanh"),
    "aten.rnn_relu.input": functools.partial(_rnn, "relu"),
}
