"""Images cropped to their own sizes and laid end to end (Pixtral), without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...idioms.decorated import innermost, with_innermost
from ...images.packed import locate_patches, same_segment_mask

#: What a forward of this kind calls.
_NAMED = frozenset(("patch_conv", "ln_pre", "patch_positional_embedding", "generate_block_attention_mask", "meshgrid"))


def cropped(original: Callable[..., Any]) -> Callable[..., Any]:
    """A vision encoder that attends within each image of a batch, told by what it calls; every other one is left alone."""
    inner = innermost(original)
    if not hasattr(inner, "__code__") or not _NAMED.issubset(inner.__code__.co_names):
        return original

    @functools.wraps(inner)
    def forward(self: Any, pixel_values: Tensor, image_sizes: Any = None, **kwargs: Any) -> Any:
        embeds = self.patch_conv(pixel_values.to(dtype=self.patch_conv.weight.dtype))
        images, _, height, width = embeds.shape
        grid = torch.tensor([[height, width]], device=embeds.device).expand(images, 2)
        if image_sizes is not None:
            sizes = torch.as_tensor(image_sizes, device=embeds.device)
            grid = torch.minimum(sizes // self.patch_size, grid)  # a crop ends where its image does
        patches = locate_patches(torch.cat([torch.ones_like(grid[:, :1]), grid], dim=1), 1)
        place = (patches.image * height + patches.row) * width + patches.column
        # A causal attention would ask whether there is more than one; this one has a mask, and asks all the same.
        torch._check(place.shape[0] > 1)
        embeds = embeds.permute(0, 2, 3, 1).flatten(0, 2).index_select(0, place).unsqueeze(0)
        embeds = self.ln_pre(embeds)
        positions = torch.stack([patches.row, patches.column], dim=-1)
        return self.transformer(
            embeds,
            attention_mask=same_segment_mask(embeds.shape[1], grid.prod(dim=-1), embeds.dtype),
            position_embeddings=self.patch_positional_embedding(embeds, positions),
            **kwargs,
        )

    return with_innermost(original, forward)


WORKAROUND = Workaround(
    reason="Every image of a batch is cropped to its own size in a loop, which fixes the number of images (Pixtral, and "
    "Mistral 3, LightOnOCR and LLaVA with its encoder).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*VisionModel.forward",),
    apply=cropped,
)
