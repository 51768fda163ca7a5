"""Blocks of patches in packed images of different sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from .packed import locate_patches


def blocks(features: Tensor, grid: Tensor, high: int, wide: int) -> Tensor:
    """The patches of each block: [blocks, high * wide, channels].

    Patches that fill no block at the right or the bottom are dropped.

    Args:
        features: [patches, channels], of all images, row by row.
        grid: int64 [images, 2], rows and columns of patches.
        high: Rows of a block.
        wide: Columns of a block.
    """
    counts = grid.prod(dim=-1)
    merged = [torch.ones_like(counts), grid[:, 0] // high, grid[:, 1] // wide]
    found = locate_patches(torch.stack(merged, dim=1), 1)
    first = (counts.cumsum(0) - counts).index_select(0, found.image)
    across = grid[:, 1].index_select(0, found.image)
    down, along = (torch.arange(size, device=grid.device) for size in (high, wide))
    row = found.row.reshape(-1, 1, 1) * high + down.reshape(1, -1, 1)
    column = found.column.reshape(-1, 1, 1) * wide + along
    place = first.reshape(-1, 1, 1) + row * across.reshape(-1, 1, 1) + column
    return features.index_select(0, place.flatten()).reshape(-1, high * wide, features.shape[-1])
