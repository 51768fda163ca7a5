"""Blocks of packed images resampled to one patch each, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...images.packed import locate_patches

#: What a method calls that resamples each image to its blocks.
_NAMED = frozenset(("split", "prod", "tolist", "interpolate", "permute", "append"))


def unshuffled(original: Callable[..., Any]) -> Callable[..., Any]:
    """`pixel_unshuffle(hidden_states, grid_thw, merge_sizes)` by `interpolate`, told by what it calls."""
    code = getattr(original, "__code__", None)
    if code is None or not _NAMED.issubset(code.co_names) or code.co_varnames[1:4] != _ARGUMENTS:
        return original

    @functools.wraps(original)
    def pixel_unshuffle(self: Any, hidden_states: Tensor, grid_thw: Tensor, merge_sizes: Tensor) -> Tensor:
        side = torch.as_tensor(merge_sizes, device=grid_thw.device)
        merged = torch.stack([grid_thw[:, 0], grid_thw[:, 1] // side, grid_thw[:, 2] // side], dim=1)
        blocks = locate_patches(merged, 1)
        counts = grid_thw.prod(dim=-1)
        start = (counts.cumsum(0) - counts).index_select(0, blocks.image)
        side = side.index_select(0, blocks.image)
        block = (blocks.frame * blocks.height + blocks.row) * blocks.width + blocks.column
        # The middle of a block: one patch where its side is odd, the mean of four where it is even.
        first, last = (side - 1) // 2, side // 2
        places = [start + (block * side + row) * side + column for row in (first, last) for column in (first, last)]
        taken = [hidden_states.index_select(0, place) for place in places]
        return (taken[0] + taken[1] + taken[2] + taken[3]) / 4

    return pixel_unshuffle


_ARGUMENTS = ("hidden_states", "grid_thw", "merge_sizes")

WORKAROUND = Workaround(
    reason="Every image is resampled to its blocks in a loop, by sizes that are data (VideoLLaMA 3).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*.pixel_unshuffle",),
    apply=unshuffled,
)
