"""Mamba-1: the sequential selective scan, in closed form and from any state."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...recurrences.scan import linear_scan


def selective_scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """`mamba_selective_scan` with the recurrence of `trace.recurrences.scan`; takes `initial_state` besides.

    `hidden_states`, `dt`: [batch, channels, seq]; `A`: [channels, state]; `B`, `C`: [batch, state, seq].
    """

    @functools.wraps(original)
    def scan(
        hidden_states: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        D: Tensor | None = None,
        z: Tensor | None = None,
        delta_bias: Tensor | None = None,
        delta_softplus: bool = False,
        return_last_state: bool = False,
        initial_state: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        dtype = hidden_states.dtype
        if delta_bias is not None:
            dt = dt + delta_bias.to(dt.dtype)[..., None]
        if delta_softplus:
            dt = F.softplus(dt)
        steps = dt.transpose(1, 2).unsqueeze(-1)
        inputs = hidden_states.transpose(1, 2).unsqueeze(-1)
        keys, queries = B.transpose(1, 2), C.transpose(1, 2)
        update = steps * keys.unsqueeze(2).float() * inputs.float()
        states = linear_scan(torch.exp(A * steps), update, initial_state)
        output = torch.matmul(states[:, 1:].to(dtype), queries.unsqueeze(-1)).squeeze(-1).transpose(1, 2)
        if D is not None:
            output = output + hidden_states * D[None, :, None]
        if z is not None:
            output = output * F.silu(z)
        return (output, states[:, -1]) if return_last_state else output

    return scan


WORKAROUND = Workaround(
    reason="The selective scan loops over the sequence in Python, which freezes its length (Mamba, FalconMamba, Jamba, "
    "Zamba).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:mamba_selective_scan",),
    apply=selective_scan,
)
