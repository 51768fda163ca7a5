"""xLSTM: the matrix memory (mLSTM), chunk by chunk in closed form with its running maximum."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...recurrences.scan import Element, doubling_scan

_CHUNK = 32
#: Sequences of up to 32 * 2**13 = 262 144 steps.
_ROUNDS = 13
#: Stands for minus infinity: finite, so that the difference of two of them is a number.
_LOWEST = -1e30


def backend(original: Callable[..., Any]) -> Callable[..., Any]:
    """`xLSTMBackend.forward` in inference mode, from any state, for one step or many."""

    @functools.wraps(original)
    def forward(
        self: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        igate: Tensor,
        fgate: Tensor,
        c_initial: Tensor | None = None,
        n_initial: Tensor | None = None,
        m_initial: Tensor | None = None,
        return_last_states: bool | None = None,
        mode: str | None = None,
    ) -> Any:
        batch, heads, _, dim = key.shape
        empty = c_initial is None or n_initial is None or m_initial is None
        state = (
            torch.zeros(batch, heads, dim, value.shape[-1], device=key.device) if empty else c_initial,
            torch.zeros(batch, heads, dim, device=key.device) if empty else n_initial,
            torch.zeros(batch, heads, 1, device=key.device) if empty else m_initial,
        )
        output, states = _mlstm(query, key, value, igate, fgate, state, self.config.eps)
        wanted = (
            "inference" in (mode or self.config.mode)
            or return_last_states
            or (return_last_states is None and self.config.return_last_states)
        )
        return (output, states) if wanted else output

    return forward


def _mlstm(
    query: Tensor, key: Tensor, value: Tensor, igate: Tensor, fgate: Tensor, state: Any, eps: float
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Outputs [batch, heads, seq, value_dim], and the memory, its normalizer and its maximum after the last step."""
    batch, heads, length, dim = key.shape
    dtype, width = query.dtype, value.shape[-1]
    chunks = (length + _CHUNK - 1) // _CHUNK + 1
    missing = chunks * _CHUNK - length

    def cut(x: Tensor, fill: float = 0.0) -> Tensor:
        """[batch, heads, seq, dim] to [batch, chunks, heads, _CHUNK, dim]."""
        padded = F.pad(x.float(), (0, 0, 0, missing), value=fill)
        return padded.reshape(batch, heads, chunks, _CHUNK, x.shape[-1]).transpose(1, 2)

    # A column of ones beside the values carries the normalizer along with the memory.
    q, k, v = cut(query) * dim**-0.5, cut(key), cut(F.pad(value, (0, 1), value=1.0))
    gate, kept = cut(igate.unsqueeze(-1), _LOWEST), cut(F.logsigmoid(fgate.float()).unsqueeze(-1)).cumsum(-2)
    total = kept[..., -1:, :]
    strength = total - kept + gate
    top = strength.amax(-2, keepdim=True)
    update = (k * torch.exp(strength - top)).transpose(-1, -2) @ v
    memory = torch.cat([state[0].float(), state[1].float().unsqueeze(-1)], dim=-1)
    first = (
        torch.full_like(total[:, :1], _LOWEST),
        state[2].float().reshape(batch, 1, heads, 1, 1),
        memory.unsqueeze(1),
    )
    elements = tuple(torch.cat([f, x], dim=1) for f, x in zip(first, (total, top, update), strict=True))
    _, tops, memories = doubling_scan(_combine, elements, _ROUNDS)

    lower = torch.ones(_CHUNK, _CHUNK, dtype=torch.bool, device=q.device).tril()
    within = (kept - (kept - gate).transpose(-1, -2)).masked_fill(~lower, _LOWEST)
    past = kept + tops[:, :-1]
    highest = torch.maximum(past, within.amax(-1, keepdim=True))
    weights = (q @ k.transpose(-1, -2)) * torch.exp(within - highest).masked_fill(~lower, 0.0)
    summed = (q * torch.exp(past - highest)) @ memories[:, :-1] + weights @ v
    denominator = torch.maximum(summed[..., width:].abs(), torch.exp(-highest)) + eps
    output = (summed[..., :width] / denominator).transpose(1, 2).reshape(batch, heads, chunks * _CHUNK, width)
    last = memories[:, -1]
    return output[:, :, :length].to(dtype), (last[..., :width], last[..., width], tops[:, -1, :, 0])


def _combine(earlier: Element, later: Element) -> Element:
    top = torch.maximum(earlier[1] + later[0], later[1])
    memory = torch.exp(earlier[1] + later[0] - top) * earlier[2] + torch.exp(later[1] - top) * later[2]
    return (earlier[0] + later[0]).clamp(min=_LOWEST), top, memory


WORKAROUND = Workaround(
    reason="xLSTM picks its kernels and their loops by the length of the sequence, which freezes it.",
    upstream="none: the loops are right in eager; only a trace unrolls them",
    targets=("transformers.models.*:xLSTMBackend.forward",),
    apply=backend,
)
