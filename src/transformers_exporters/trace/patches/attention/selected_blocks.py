"""The blocks of keys that each query picks out of those it sees (Qwen4's indexer), for all queries at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...idioms.decorated import innermost, with_innermost

#: What a forward of this kind reads and calls.
_NAMED = frozenset(("index_qk_proj", "k_layernorm", "block_topk", "compress_ratio", "nonzero", "update_indexer"))


def of_all_queries(original: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that loops over rows and queries, told by what it calls; every other one is left alone.

    Each query cuts the keys that it sees into blocks, from the first on, and keeps the `block_topk` blocks of the highest
    scores and what is left behind the last whole block. The keys of all blocks are gathered for every query, so the
    memory is queries times keys times the width of a key.
    """
    inner = innermost(original)
    if not hasattr(inner, "__code__") or not _NAMED.issubset(inner.__code__.co_names):
        return original
    rotate = inner.__globals__["apply_rotary_pos_emb"]

    @functools.wraps(inner)
    def forward(
        self: Any, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], attention_mask: Tensor, cache: Any
    ) -> Tensor:
        length, width, ratio = hidden_states.shape[1], self.index_head_dim, self.compress_ratio
        cos, sin = position_embeddings
        projected = self.index_qk_proj(hidden_states).unflatten(-1, (-1, width))
        queries, keys = projected[:, :, : self.index_n_heads], projected[:, :, self.index_n_heads]
        queries = rotate(self.q_layernorm(queries), cos=cos[:, -length:], sin=sin[:, -length:], unsqueeze_dim=2)
        if cache is not None:
            keys = cache.update_indexer(keys, self.layer_idx)
        visible = (attention_mask if attention_mask.dtype == torch.bool else attention_mask == 0)[:, 0]
        rank = visible.cumsum(-1) - 1
        tokens = _blocks(visible, rank, ratio)
        row = torch.arange(visible.shape[0], device=visible.device).view(-1, 1, 1)
        pooled = self.k_layernorm(keys[row.unsqueeze(-1), tokens].float().mean(-2).to(keys.dtype))
        start = tokens[..., 0]
        pooled = rotate(pooled.unsqueeze(-2), cos=cos[row, start], sin=sin[row, start], unsqueeze_dim=-2).squeeze(-2)
        scores = torch.relu(queries.float() @ pooled.float().transpose(-1, -2)).sum(-2) / math.sqrt(width)
        block = torch.arange(scores.shape[-1], device=scores.device)
        whole = (visible.sum(-1, keepdim=True) // ratio).expand(-1, -1, block.shape[0])
        scores = F.pad(scores.masked_fill(block >= whole, -math.inf), (0, self.block_topk), value=-math.inf)
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, scores.topk(self.block_topk).indices, True)
        chosen = (chosen[..., : block.shape[0]] & (block < whole)) | (block == whole)
        return (visible & chosen.gather(-1, rank.clamp_min(0) // ratio)).unsqueeze(1)

    return with_innermost(original, forward)


def _blocks(visible: Tensor, rank: Tensor, ratio: int) -> Tensor:
    """Which keys the blocks of a query hold; those that are not whole are filled up with the first key.

    Args:
        visible: bool [batch, queries, keys].
        rank: int64, of the same shape: the how manieth of the visible keys each is.
        ratio: Keys of a block.

    Returns:
        int64 [batch, queries, blocks, ratio].
    """
    batch, queries, keys = visible.shape
    blocks = keys // ratio + 2  # never a single one, which would be an axis of its own kind
    room = blocks * ratio
    place = torch.where(visible, rank, room)  # what is not visible goes behind the end, and is cut off
    key = torch.arange(keys, device=visible.device).expand(batch, queries, keys)
    table = torch.zeros(batch, queries, room + 1, dtype=torch.long, device=visible.device)
    return table.scatter(-1, place, key)[..., :room].unflatten(-1, (blocks, ratio))


WORKAROUND = Workaround(
    reason="A loop over the rows and the queries of a batch, and over what each of them sees, fixes their numbers in the "
    "graph, or asks for numbers that are data (Qwen4).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*Indexer.forward",),
    apply=of_all_queries,
)
