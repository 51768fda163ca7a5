"""ViLT: patches of images of different sizes chosen in the order in which they lie, instead of at random image by image."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...images.packed import first_true

#: What an embedding of this kind calls: it draws the patches that it keeps.
_NAMED = frozenset(("multinomial", "patch_embeddings", "position_embeddings", "cls_token", "nonzero"))


def in_order(original: Callable[..., Any]) -> Callable[..., Any]:
    """A `visual_embed` that draws patches, told by what it calls; every other one is left alone.

    It draws without replacement as many as the largest image of the batch has: so each image keeps all of its own, in an
    order that attention does not see, and padding that is masked. A config that keeps fewer drops some at random; here
    those at the end.
    """
    if not _NAMED.issubset(getattr(getattr(original, "__code__", None), "co_names", ())):
        return original

    @functools.wraps(original)
    def visual_embed(self: Any, pixel_values: Tensor, pixel_mask: Tensor, max_image_length: int = 200) -> Any:
        """Embeddings [batch, 1 + patches, hidden], their mask, and (places [batch, patches, 2], size of the grid)."""
        x = self.patch_embeddings(pixel_values)
        batch, _, height, width = x.shape
        mask = F.interpolate(pixel_mask[:, None].float(), size=(height, width)).long()[:, 0]
        rows, columns = mask.sum(1)[:, 0], mask.sum(2)[:, 0]
        side = self.config.image_size // self.config.patch_size
        grid = self.position_embeddings[0, 1:].reshape(side, side, -1)
        down, along = _weights(rows, height, side), _weights(columns, width, side)
        position = torch.einsum("byp,pqc,bxq->byxc", down, grid, along).flatten(1, 2)
        seen = mask.flatten(1)
        most = (rows * columns).amax()
        if isinstance(max_image_length, int) and max_image_length >= 0:
            most = most.clamp(max=max_image_length)
        length = most.item()
        torch._check(length >= 1)
        torch._check(length <= height * width)
        order = first_true(seen > 0, length)

        def chosen(values: Tensor) -> Tensor:
            return torch.gather(values, 1, order.unsqueeze(-1).expand(-1, -1, values.shape[-1]))

        place = torch.arange(height * width, device=x.device)
        places = torch.stack([place // width, place % width], dim=-1).expand(batch, -1, -1)
        embedded = chosen(x.flatten(2).transpose(1, 2)) + chosen(position.to(x.dtype))
        first = (self.cls_token + self.position_embeddings[:, :1]).expand(batch, -1, -1)
        masks = torch.cat([torch.ones_like(seen[:, :1]), torch.gather(seen, 1, order)], dim=1)
        return self.dropout(torch.cat([first, embedded], dim=1)), masks, (chosen(places), (height, width))

    return visual_embed


def _weights(sizes: Tensor, most: Any, side: int) -> Tensor:
    """What each of `side` positions contributes to each place of an image's axis: float [batch, most, side].

    As bilinear `interpolate(align_corners=True)` to the image's own size; zero behind it.
    """
    place = torch.arange(most, device=sizes.device)
    scale = (side - 1) / (sizes - 1).clamp(min=1).to(torch.float32)
    source = place.to(torch.float32) * scale.unsqueeze(1)
    weight = (1 - (source.unsqueeze(-1) - torch.arange(side, device=sizes.device)).abs()).clamp(min=0)
    return weight * (place < sizes.unsqueeze(1)).unsqueeze(-1)


WORKAROUND = Workaround(
    reason="ViLT draws the patches of each image at random, in a loop over images and by counts that are data.",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*.visual_embed",),
    apply=in_order,
)
