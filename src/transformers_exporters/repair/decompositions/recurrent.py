"""Recurrent layers: single steps, and an LSTM of a fixed number of them, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear


def lstm(
    steps: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """`aten.lstm.input` by its cells. torch's own rule is an operator of the CPU library that it was built with."""
    decompositions: Any = torch._decomp.decompositions
    weights = decompositions.gather_params(params, has_biases, hx[0].size(2) != hx[1].size(2))
    outputs, finals = decompositions._rnn_helper(
        steps,
        list(zip(*hx, strict=True)),
        weights,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        decompositions.one_layer_lstm,
    )
    hidden, cell = zip(*finals, strict=True)
    return outputs, torch.stack(hidden), torch.stack(cell)


def gru_cell(
    x: Tensor, hidden: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """One step of a GRU."""
    return gru_state(linear(x, w_x, b_x), linear(hidden, w_h, b_h), hidden)


def gru_state(of_x: Tensor, of_hidden: Tensor, hidden: Tensor) -> Tensor:
    """The next state of a GRU from its gates: [..., 3 * size], what the input and what the state says of them."""
    reset, update, new = _parts(of_x, 3)
    reset_h, update_h, new_h = _parts(of_hidden, 3)
    keep = torch.sigmoid(update + update_h)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_h) * new_h)
    return candidate + keep * (hidden - candidate)


def lstm_cell(
    x: Tensor,
    hx: Sequence[Tensor],
    w_x: Tensor,
    w_h: Tensor,
    b_x: Tensor | None = None,
    b_h: Tensor | None = None,
) -> list[Tensor]:
    """One step of an LSTM: the new hidden and cell states."""
    return lstm_states(linear(x, w_x, b_x) + linear(hx[0], w_h, b_h), hx[1])


def lstm_states(gates: Tensor, cell: Tensor) -> list[Tensor]:
    """The next hidden and cell states of an LSTM from its gates: [..., 4 * size]."""
    enter, forget, new, leave = _parts(gates, 4)
    state = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return [torch.sigmoid(leave) * torch.tanh(state), state]


def _parts(gates: Tensor, count: int) -> list[Tensor]:
    size = gates.shape[-1] // count
    return [gates.narrow(-1, at * size, size) for at in range(count)]


def tanh_cell(
    x: Tensor, hidden: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """One step of a plain recurrent layer."""
    return torch.tanh(linear(x, w_x, b_x) + linear(hidden, w_h, b_h))


RULES: dict[str, Any] = {
    "aten.lstm.input": lstm,
    "aten.gru_cell.default": gru_cell,
    "aten.lstm_cell.default": lstm_cell,
    "aten.rnn_tanh_cell.default": tanh_cell,
}
