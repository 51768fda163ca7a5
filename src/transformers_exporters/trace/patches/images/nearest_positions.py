"""Where every packed patch lies in a learned table of positions, to the nearest, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...images.packed import locate_patches


def nearest(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_vision_nearest_position_ids`: int64 [patches]."""

    @functools.wraps(original)
    def ids(target_sizes: Tensor, num_patches_per_side: int, kwargs: dict[str, Any] | None = None) -> Tensor:
        if kwargs is not None and (given := kwargs.pop("position_ids", None)) is not None:
            return given
        sizes = target_sizes.to(torch.int64)
        patches = locate_patches(torch.cat([torch.ones_like(sizes[:, :1]), sizes], dim=1), 1)
        # An attention asks whether there is more than one.
        torch._check(patches.row.shape[0] > 1)
        step = 1 / num_patches_per_side
        borders = torch.arange(step, 1.0, step, device=sizes.device)
        row, column = (
            torch.bucketize(place / size, borders, right=True)
            for place, size in ((patches.row, patches.height), (patches.column, patches.width))
        )
        return row * num_patches_per_side + column

    return ids


WORKAROUND = Workaround(
    reason="Vision position ids loop over the sizes of the images, which are data (MiniCPM-V 4.6 and 4.7, MiniCPM OCR).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_vision_nearest_position_ids",),
    apply=nearest,
)
