"""Longformer and LED: sliding-window attention with global tokens as masked attention, whatever tokens are global."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def self_attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """`forward` of a self-attention that takes `is_index_global_attn`; every other one is left alone.

    A token attends to its window and to all global tokens, a global token (with its own projections) to everything. Which
    tokens are global is data, so the scores are computed for all pairs and masked: quadratic in the length, where the model
    is linear. Attention weights keep the model's own code, whose shape depends on the number of global tokens.
    """
    if "is_index_global_attn" not in inspect.signature(original).parameters:
        return original

    @functools.wraps(original)
    def forward(
        self: Any,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        is_index_masked: Tensor | None = None,
        is_index_global_attn: Tensor | None = None,
        is_global_attn: Any = None,
        output_attentions: bool = False,
    ) -> Any:
        if output_attentions or is_index_masked is None or is_index_global_attn is None:
            return original(
                self,
                hidden_states,
                attention_mask,
                is_index_masked,
                is_index_global_attn,
                is_global_attn,
                output_attentions,
            )
        length = hidden_states.shape[1]
        position = torch.arange(length, device=hidden_states.device)
        near = (position[None, :] - position[:, None]).abs() <= self.one_sided_attn_window_size
        hidden, local = ~is_index_masked[:, None, :], near | is_index_global_attn[:, None, :]
        names = ("query", "key", "value")
        attended = _attend(self, hidden_states, names, hidden & local)
        attended = attended.masked_fill(is_index_masked[:, :, None], 0.0)
        everywhere = _attend(self, hidden_states, tuple(f"{name}_global" for name in names), hidden)
        return (torch.where(is_index_global_attn[:, :, None], everywhere, attended),)

    return forward


def _attend(layer: Any, hidden_states: Tensor, names: tuple[str, ...], allowed: Tensor) -> Tensor:
    """Attention with the layer's projections of these names, where `allowed` [batch, seq or 1, seq] says so."""
    batch, length, width = hidden_states.shape
    query, key, value = (
        getattr(layer, name)(hidden_states).view(batch, length, layer.num_heads, layer.head_dim).transpose(1, 2)
        for name in names
    )
    scores = (query / math.sqrt(layer.head_dim)) @ key.transpose(-1, -2)
    scores = scores.masked_fill(~allowed.unsqueeze(1), torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)
    return (weights @ value).transpose(1, 2).reshape(batch, length, width)


WORKAROUND = Workaround(
    reason="Longformer gathers its global tokens, whose number is data, and narrows the scores to them (Longformer, LED).",
    upstream="none: the gather is right in eager; a trace does not know its size",
    targets=("transformers.models.*:*SelfAttention.forward",),
    apply=self_attention,
    when=lambda model: (
        any("is_index_global_attn" in inspect.signature(m.forward).parameters for m in model.modules())
        if isinstance(model, torch.nn.Module)
        else True
    ),
)
