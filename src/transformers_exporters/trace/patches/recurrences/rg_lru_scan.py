"""RecurrentGemma: the recurrence of the RG-LRU, in closed form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...recurrences.scan import linear_scan


def rnn_scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_rnn_scan`: `hidden_states`, `recurrent_gate` [batch, seq, width], `reset` [batch, seq, 1], state [batch, width]."""

    @functools.wraps(original)
    def scan(
        self: Any,
        hidden_states: Tensor,
        recurrent_gate: Tensor,
        reset: Tensor,
        recurrent_states: Tensor | None,
        acc_dtype: torch.dtype = torch.float32,
    ) -> tuple[Tensor, Tensor]:
        gate = (recurrent_gate * ~reset).to(acc_dtype)
        states = linear_scan(gate, hidden_states.to(acc_dtype), recurrent_states)
        return states[:, 1:].to(hidden_states.dtype), states[:, -1]

    return scan


WORKAROUND = Workaround(
    reason="RecurrentGemma loops over the sequence in Python, which freezes its length.",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*._rnn_scan",),
    apply=rnn_scan,
)
