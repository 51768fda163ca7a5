"""MiniMax: lightning attention (linear attention with a fixed decay), chunk by chunk in closed form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...recurrences.scan import linear_scan

_CHUNK = 32


def lightning_attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """`LightningAttention.forward`, the same from an empty state, from a cached one, and for one step or many."""

    @functools.wraps(original)
    def forward(
        self: Any,
        hidden_states: Tensor,
        position_embeddings: Any = None,
        attention_mask: Tensor | None = None,
        cache: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        batch, length, _ = hidden_states.shape
        projected = self.act_fn(self.qkv_proj(hidden_states))
        if attention_mask is not None:
            projected = (projected * attention_mask[:, :, None]).to(projected.dtype)
        projected = projected.reshape(batch, length, self.num_attention_heads, 3 * self.head_dim)
        query, key, value = torch.split(projected, self.head_dim, dim=3)
        state = None if cache is None else cache.get_linear_cache(self.layer_idx)
        if state is None:
            state = value.new_zeros(batch, self.num_attention_heads, self.head_dim, self.head_dim)
        attended, state = _attend(query, key, value, self.slope_rate, state)
        attended = self.norm(attended.reshape(batch, length, self.num_attention_heads * self.head_dim))
        output = self.out_proj(F.sigmoid(self.output_gate(hidden_states)) * attended)
        if cache is not None:
            cache.set_linear_cache(self.layer_idx, state)
        return output, state

    return forward


def _attend(query: Tensor, key: Tensor, value: Tensor, slope: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`S_t = exp(-slope) S_(t-1) + k_t v_t^T`, `o_t = S_t^T q_t`.

    `query`, `key`, `value`: [batch, seq, heads, dim]; `slope`: [heads, 1, 1]; `state`: [batch, heads, dim, dim].
    """
    batch, length, heads, dim = query.shape
    chunks = (length + _CHUNK - 1) // _CHUNK + 1
    q, k, v = (
        F.pad(x, (0, 0, 0, 0, 0, chunks * _CHUNK - length)).reshape(batch, chunks, _CHUNK, heads, dim).transpose(2, 3)
        for x in (query, key, value)
    )
    step = torch.arange(_CHUNK, device=query.device)
    gap = step[:, None] - step[None, :]
    within = torch.exp(-slope * gap.clamp(min=0)) * (gap >= 0)
    update = (k * torch.exp(-slope * (_CHUNK - 1 - step)[:, None])).transpose(-1, -2) @ v
    decay = torch.exp(-slope * _CHUNK).expand(batch, chunks, heads, 1, 1)
    before = linear_scan(decay, update, state)[:, :-1].to(q.dtype)
    output = ((q @ k.transpose(-1, -2)) * within) @ v + (q * torch.exp(-slope * (step + 1)[:, None])) @ before
    output = output.transpose(2, 3).reshape(batch, chunks * _CHUNK, heads, dim)[:, :length]
    # The last chunk may be cut, so the state behind it is summed up on its own.
    left = (length - 1 - torch.arange(length, device=query.device))[:, None]
    weighted = key.transpose(1, 2) * torch.exp(-slope * left)
    final = torch.exp(-slope * length) * state + weighted.transpose(-1, -2) @ value.transpose(1, 2)
    return output, final.to(value.dtype)


WORKAROUND = Workaround(
    reason="Lightning attention loops over the blocks of the sequence in Python, which freezes its length (MiniMax).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*LightningAttention.forward",),
    apply=lightning_attention,
)
