"""Sums, means and maxima of the rows of a table in bags: what `nn.EmbeddingBag` computes."""

from __future__ import annotations

import torch
from torch import Tensor

from .groups import group_of

_SUM, _MEAN, _MAX = 0, 1, 2


def embedding_bag(
    table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> list[Tensor]:
    """table: [rows, width]; indices: [n]; offsets: [bags], where in `indices` each bag begins.

    Returns the result [bags, width], the bag of each index [n], the size of each bag, and zeros in the place of the
    positions of the maxima, which only a gradient needs.
    """
    starts = offsets.narrow(0, 0, offsets.shape[0] - 1) if include_last_offset else offsets
    bags, bag = starts.shape[0], group_of(starts, indices.shape[0])
    rows = torch.nn.functional.embedding(indices, table)
    held = torch.ones_like(indices) if padding_idx is None or padding_idx < 0 else (indices != padding_idx).long()
    sizes = torch.zeros(bags, dtype=torch.int64).index_add(0, bag, held.long())
    if mode == _MAX:
        rows = torch.where(held.bool().unsqueeze(1), rows, torch.finfo(rows.dtype).min)
        lowest = torch.full([bags, table.shape[1]], torch.finfo(rows.dtype).min, dtype=rows.dtype)
        result = lowest.scatter_reduce(0, bag.unsqueeze(1).expand_as(rows), rows, "amax")
        result = torch.where(sizes.unsqueeze(1) > 0, result, 0.0)
    else:
        weights = held.to(rows.dtype) if per_sample_weights is None else per_sample_weights * held.to(rows.dtype)
        zeros = torch.zeros([bags, table.shape[1]], dtype=rows.dtype)
        result = zeros.index_add(0, bag, rows * weights.unsqueeze(1))
        if mode == _MEAN:
            result = result / sizes.clamp(min=1).to(rows.dtype).unsqueeze(1)
    maxima = torch.zeros(result.shape if mode == _MAX else [bags], dtype=torch.int64)
    # Of their own: torch's kernels may give the last three other sizes, which the results of a decomposition take over.
    return [result, bag.clone(), sizes.clone(), maxima]


RULES = {
    "aten.embedding_bag.default": embedding_bag,
    "aten.embedding_bag.padding_idx": embedding_bag,
    "aten._embedding_bag.default": embedding_bag,
    "aten._embedding_bag_forward_only.default": embedding_bag,
}
