"""Blocks of patches merged in packed images of different sizes (Mistral 3, LightOnOCR), without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...workarounds import Workaround
from ..packed import locate_patches

#: What a forward of this kind calls: it unfolds each image, and applies one layer to what comes out.
_NAMED = frozenset(("split", "view", "unfold", "spatial_merge_size", "merging_layer"))


def merger(original: Callable[..., Any]) -> Callable[..., Any]:
    """Merging by `unfold`, told by what it calls; every other forward is left alone.

    Patches that fill no block at the right or the bottom are dropped, as `unfold` does.
    """
    if not _NAMED.issubset(original.__code__.co_names):
        return original

    @functools.wraps(original)
    def forward(self: Any, image_features: Tensor, image_sizes: Any) -> Tensor:
        side = self.spatial_merge_size
        grid = torch.as_tensor(image_sizes, device=image_features.device) // self.patch_size
        counts = grid.prod(dim=-1)
        blocks = locate_patches(torch.cat([torch.ones_like(grid[:, :1]), grid // side], dim=1), 1)
        first = (counts.cumsum(0) - counts).index_select(0, blocks.image)
        across = grid[:, 1].index_select(0, blocks.image)
        inside = torch.arange(side, device=grid.device)
        row = blocks.row.reshape(-1, 1, 1) * side + inside.reshape(1, side, 1)
        column = blocks.column.reshape(-1, 1, 1) * side + inside
        place = first.reshape(-1, 1, 1) + row * across.reshape(-1, 1, 1) + column
        merged = image_features.index_select(0, place.flatten()).reshape(-1, side * side, image_features.shape[-1])
        return self.merging_layer(merged.transpose(1, 2).flatten(1))

    return forward


WORKAROUND = Workaround(
    reason="Blocks of patches are merged image by image, by sizes that are data (Mistral 3, LightOnOCR).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*PatchMerger.forward",),
    apply=merger,
)
