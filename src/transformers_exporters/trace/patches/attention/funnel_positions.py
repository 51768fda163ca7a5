"""Funnel: relative positions of every pooling level from the length, not from Python lists of positions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def position_embeds(original: Callable[..., Any]) -> Callable[..., Any]:
    """`FunnelAttentionStructure.get_position_embeds` for any sequence length.

    The model pools the list of positions `0, 1, ..., n - 1` level by level and reads only its ends and its length. Level
    `k` holds the positions `first, first + 2**k, ...`, so the distances that a level needs are one arithmetic sequence.
    """

    @functools.wraps(original)
    def embeds(self: Any, seq_len: int, dtype: torch.dtype, device: torch.device) -> Any:
        if self.config.attention_type == "factorized":
            return original(self, seq_len, dtype, device)
        half = self.config.d_model // 2
        frequency = 1 / (10000 ** (torch.arange(half, dtype=torch.int64, device=device).to(dtype) / half))

        def encode(distance: Tensor) -> Tensor:
            angle = distance.to(dtype)[:, None] * frequency[None]
            return torch.cat([self.sin_dropout(torch.sin(angle)), self.cos_dropout(torch.cos(angle))], dim=-1)

        levels: list[list[Tensor | None]] = []
        length: Any = seq_len
        for level in range(self.config.num_blocks):
            pooling = None
            if level > 0:
                full, length = length, _pooled(length, self.config)
                # With a separate <cls> the first position moves by -stride at every level.
                first = 2 * length - 1 if self.config.separate_cls else 2 * length
                last = -full if self.config.separate_cls else 1 - full
                pooling = encode(2 ** (level - 1) * torch.arange(first, last - 1, -1, device=device))
            same = encode(2**level * torch.arange(length, -length, -1, device=device))
            levels.append([same, pooling])
        return levels

    return embeds


def _pooled(length: Any, config: Any) -> Any:
    """Positions left after one pooling: every second one, <cls> kept apart, the last one cut where the model says so."""
    if not config.separate_cls:
        return (length + 1) // 2
    return 1 + (length - 1) // 2 if config.truncate_seq else 1 + length // 2


WORKAROUND = Workaround(
    reason="Funnel pools Python lists of positions, which freezes the sequence at the traced length.",
    upstream="none: the lists are right in eager; only a trace unrolls them",
    targets=("transformers.models.funnel.modeling_funnel:FunnelAttentionStructure.get_position_embeds",),
    apply=position_embeds,
)
