"""BigBird: block-sparse attention for any length, in a tenth of the operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround

#: What the model adds to the score of a padded key.
_PENALTY = -10000.0


def block_sparse_attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """`bigbird_block_sparse_attention` of a model in eval mode.

    In eval mode every random block is block 0, so a query block `i` attends to block 0 (once more for each random block),
    to `i - 1, i, i + 1` and to the last block; the first and the last query block attend to everything. A key that is
    attended to `m` times is a key whose score is raised by `log m`. The cost stays linear in the length.
    """

    @functools.wraps(original)
    def attention(
        self: Any, query_layer: Tensor, key_layer: Tensor, value_layer: Tensor, *rest: Any, **options: Any
    ) -> tuple[Tensor, Tensor]:
        if self.training:
            return original(self, query_layer, key_layer, value_layer, *rest, **options)
        _, from_mask, to_mask = rest[:3]
        repeats, size = 1 + self.num_random_blocks, self.block_size
        query = query_layer / math.sqrt(query_layer.shape[-1])
        penalty = (1.0 - to_mask) * _PENALTY
        sparse = _sparse_rows(query, key_layer, value_layer, penalty, size, repeats)
        outer = torch.cat([query[:, :, :size], query[:, :, -size:]], dim=2)
        dense = torch.softmax(outer @ key_layer.transpose(-1, -2) + penalty, dim=-1) @ value_layer
        rows = torch.cat([dense[:, :, :size], sparse[:, :, size:-size], dense[:, :, size:]], dim=2)
        probabilities = _probabilities(query, key_layer, penalty, size, repeats)
        return (rows * from_mask).transpose(1, 2), probabilities

    return attention


def _sparse_rows(query: Tensor, key: Tensor, value: Tensor, penalty: Tensor, size: int, repeats: int) -> Tensor:
    """What every query block reads from blocks 0, i - 1, i, i + 1 and the last. All shapes [batch, heads, seq, dim]."""
    batch, heads, length, dim = query.shape
    blocks = length // size
    block = torch.arange(blocks, device=query.device)
    last = blocks - 1
    neighbour = block[:, None] + torch.arange(-1, 2, device=query.device)
    inner = (neighbour > 0) & (neighbour < last)
    zero = torch.zeros_like(block)[:, None]
    index = torch.cat([zero, neighbour.clamp(min=0, max=last), zero + last], dim=1)
    bias = torch.zeros_like(inner, dtype=query.dtype).masked_fill(~inner, float("-inf"))
    edge = torch.zeros_like(zero, dtype=query.dtype)
    bias = torch.cat([edge + math.log(repeats), bias, edge], dim=1).repeat_interleave(size, dim=1)

    def gathered(x: Tensor) -> Tensor:
        cut = x.reshape(x.shape[0], x.shape[1], blocks, size, x.shape[3])
        return cut.index_select(2, index.flatten()).reshape(x.shape[0], x.shape[1], blocks, 5 * size, x.shape[3])

    masked = gathered(penalty.transpose(-1, -2)).transpose(-1, -2)
    score = query.reshape(batch, heads, blocks, size, dim) @ gathered(key).transpose(-1, -2)
    weight = torch.softmax(score + masked + bias[:, None], dim=-1)
    return (weight @ gathered(value)).reshape(batch, heads, length, dim)


def _probabilities(query: Tensor, key: Tensor, penalty: Tensor, size: int, repeats: int) -> Tensor:
    """The dense attention matrix, for callers that ask for attentions; dropped from the graph where nobody does."""
    block = torch.arange(query.shape[2], device=query.device) // size
    row, column, last = block[:, None], block[None, :], block[-1]
    outer = (row == 0) | (row == last)
    near = ((row - column).abs() <= 1) | (column == 0) | (column == last) | outer
    often = (column == 0) & ~outer
    bias = torch.zeros_like(near, dtype=query.dtype).masked_fill(~near, float("-inf"))
    bias = bias.masked_fill(often, math.log(repeats))
    weight = torch.softmax(query @ key.transpose(-1, -2) + penalty + bias, dim=-1)
    return torch.where(often, weight / repeats, weight)


WORKAROUND = Workaround(
    reason="BigBird's block-sparse attention plans its random blocks with numpy for one length, and traces for 20 s "
    "(BigBird, BigBirdPegasus).",
    upstream="none: the plan is right in eager; only a trace keeps it",
    targets=("transformers.models.*:*BlockSparseAttention.bigbird_block_sparse_attention",),
    apply=block_sparse_attention,
)
