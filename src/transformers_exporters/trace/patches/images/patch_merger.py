"""Blocks of patches merged in packed images of different sizes, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....hf.pieces import Pieces
from ....workarounds import Workaround
from ...images.blocks import blocks

#: What forwards of two kinds call: one unfolds each image, the other views it as blocks, again and again.
_UNFOLDED = frozenset(("split", "view", "unfold", "spatial_merge_size", "merging_layer"))
_ROUNDS = frozenset(("merge_kernel_size", "merger_times", "mlp", "view", "permute", "append"))


def merger(original: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that merges blocks, told by what it calls; every other one is left alone."""
    names = frozenset(getattr(getattr(original, "__code__", None), "co_names", ()))
    return _unfolded(original) if names >= _UNFOLDED else _rounds(original) if names >= _ROUNDS else original


def _unfolded(original: Callable[..., Any]) -> Callable[..., Any]:
    """Merging by `unfold`: channels first, then the places of a block."""

    @functools.wraps(original)
    def forward(self: Any, image_features: Tensor, image_sizes: Any) -> Tensor:
        side = self.spatial_merge_size
        grid = torch.as_tensor(image_sizes, device=image_features.device) // self.patch_size
        return self.merging_layer(blocks(image_features, grid, side, side).transpose(1, 2).flatten(1))

    return forward


def _rounds(original: Callable[..., Any]) -> Callable[..., Any]:
    """Merging in rounds, with a layer each; the list of images is left uncut."""

    @functools.wraps(original)
    def forward(self: Any, hidden_states: Tensor, target_sizes: Tensor) -> Any:
        high, wide = self.merge_kernel_size
        grid, features = target_sizes.to(torch.int64), hidden_states[0]
        for layer in self.mlp[: self.merger_times]:
            features = layer(blocks(features, grid, high, wide).flatten(1))
            grid = torch.stack([grid[:, 0] // high, grid[:, 1] // wide], dim=1)
        return Pieces(features, grid.prod(dim=-1), "list")

    return forward


WORKAROUND = Workaround(
    reason="Blocks of patches are merged image by image, by sizes that are data (Mistral 3, LightOnOCR, "
    "MiniCPM-V 4.6).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*Merger.forward",),
    apply=merger,
)
