"""An LSTM of a fixed number of steps, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


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


RULES = {"aten.lstm.input": lstm}
