"""Merged blocks of packed images, a separator behind each row and a token around each image, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.vision_utils import get_vision_attention_seqlens

from ....workarounds import Workaround
from ...idioms.decorated import innermost, with_innermost
from ...images.blocks import blocks
from ...images.packed import places

#: What a forward calls that merges the patches of one image after the other, and what the merger of that kind is made of.
_NAMED = frozenset(("patch_merger", "split", "prod", "tolist", "embeddings", "layers", "get_vision_attention_seqlens"))
_PARTS = (
    *("before_rms", "proj_conv", "proj_act", "proj_out", "mlp", "after_rms"),
    *("image_newline", "image_begin", "image_end"),
)


def separated(original: Callable[..., Any]) -> Callable[..., Any]:
    """A vision encoder that merges image by image, told by what it calls; every other one is left alone."""
    inner = innermost(original)
    if not hasattr(inner, "__code__") or not _NAMED.issubset(inner.__code__.co_names):
        return original

    @functools.wraps(inner)
    def forward(self: Any, pixel_values: Tensor, grid_thw: Tensor, **kwargs: Any) -> Any:
        if not all(hasattr(self.patch_merger, name) for name in _PARTS):
            return inner(self, pixel_values, grid_thw, **kwargs)
        hidden = self.embeddings(pixel_values, grid_thw)
        ends, longest = get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
        for layer in self.layers:
            hidden = layer(hidden, cu_seqlens=ends, max_seqlen=longest, attention_mask=None, **kwargs)
        merged = _merge(self.patch_merger, hidden[0], grid_thw[:, 1:])
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=merged.unsqueeze(0))

    return with_innermost(original, forward)


def _merge(merger: Any, features: Tensor, grid: Tensor) -> Tensor:
    """[tokens, width] of all images: begin, the blocks of each row with a separator behind them, end.

    Args:
        merger: The module with `_PARTS`.
        features: [patches, channels], of all images, row by row.
        grid: int64 [images, 2], rows and columns of patches.
    """
    high, wide = merger.proj_conv.kernel_size
    rows, columns = grid[:, 0] // high, grid[:, 1] // wide
    merged = blocks(merger.before_rms(features), grid, high, wide).transpose(1, 2).flatten(1)
    merged = merger.proj_act(linear(merged, merger.proj_conv.weight.flatten(1), merger.proj_conv.bias))
    merged = linear(merged, merger.proj_out.weight.flatten(1), merger.proj_out.bias)

    lengths = rows * (columns + 1) + 2
    image, place = places(lengths)
    across = columns.index_select(0, image) + 1
    row, column = (place - 1) // across, (place - 1) % across
    counts = rows * columns
    block = (counts.cumsum(0) - counts).index_select(0, image) + row * (across - 1) + column
    first, last = place == 0, place == lengths.index_select(0, image) - 1
    newline = column == across - 1

    picked = merged.index_select(0, block.clamp(min=0).clamp(max=merged.shape[0] - 1))
    tokens = merger.mlp(torch.where(newline.unsqueeze(1), merger.image_newline.to(merged.dtype), picked))
    tokens = torch.where(first.unsqueeze(1), merger.image_begin.to(merged.dtype), tokens)
    tokens = torch.where(last.unsqueeze(1), merger.image_end.to(merged.dtype), tokens)
    done: Tensor = merger.after_rms(tokens)
    return done


WORKAROUND = Workaround(
    reason="The patches of each image are merged in a loop, by sizes that are data (HunYuan-VL, HY-V4).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*VisionTransformer.forward",),
    apply=separated,
)
