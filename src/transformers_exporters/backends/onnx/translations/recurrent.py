"""`nn.RNN` as ONNX's operator, over any number of steps; and which LSTM has none."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops.core import aten_lstm

__all__ = ["TRANSLATION"]


def rnn(
    activation: str,
    input: Any,
    hx: Any,
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, Any]:
    """`aten.rnn_tanh.input` and `aten.rnn_relu.input`, which the converter takes apart into the traced number of steps.

    `activation` is ONNX's name of it, `input` [steps, batch, size] (or batch first), `hx` [layers * directions, batch, hidden],
    and `params` has for each layer and direction a weight for the input, one for the state, and their biases if `has_biases`.

    Returns:
        [steps, batch, directions * hidden], or batch first; and the last states, like `hx`.
    """
    directions, each = (2 if bidirectional else 1), (4 if has_biases else 2)
    steps = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
    finals = []
    for layer in range(num_layers):
        ways = [params[at * each :][:each] for at in range(layer * directions, (layer + 1) * directions)]
        weights = [_stacked([way[0] for way in ways]), _stacked([way[1] for way in ways])]
        if has_biases:
            weights.append(_stacked([op.Concat(way[2], way[3], axis=0) for way in ways]))
        made, last = op.RNN(
            steps,
            *weights,
            initial_h=op.Slice(hx, [layer * directions], [(layer + 1) * directions], axes=[0]),
            activations=[activation] * directions,
            direction="bidirectional" if bidirectional else "forward",
            hidden_size=hx.shape[2],
        )
        steps = op.Reshape(op.Transpose(made, perm=[0, 2, 1, 3]), [0, 0, -1])
        finals.append(last)
    outputs = op.Transpose(steps, perm=[1, 0, 2]) if batch_first else steps
    return outputs, op.Concat(*finals, axis=0)


def _stacked(weights: Sequence[Any]) -> Any:
    return op.Concat(*(op.Unsqueeze(weight, [0]) for weight in weights), axis=0)


def lstm(input: Any, hx: Sequence[Any], params: Sequence[Any], has_biases: bool, num_layers: int, *rest: Any) -> Any:
    """`aten.lstm.input`; ONNX's operator has no projections, and the converter reads one as a weight (onnxscript 0.7.2)."""
    if hx[0].shape[2] != hx[1].shape[2]:
        raise NotImplementedError("ONNX has no LSTM with projections (proj_size)")
    return aten_lstm(input, hx, params, has_biases, num_layers, *rest)


TRANSLATION = {
    torch.ops.aten.rnn_tanh.input: functools.partial(rnn, "Tanh"),
    torch.ops.aten.rnn_relu.input: functools.partial(rnn, "Relu"),
    torch.ops.aten.lstm.input: lstm,
}
