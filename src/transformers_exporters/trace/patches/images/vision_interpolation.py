"""Where every packed patch lies in a learned table of positions, for any number of images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor
from transformers import vision_utils

from ....workarounds import Workaround
from ...images.packed import locate_patches


def interpolation(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_vision_interpolation_indices_and_weights`: int64 and float [patches, taps]."""

    @functools.wraps(original)
    def indices_and_weights(
        grid_thw: Tensor,
        num_grid_per_side: int,
        mode: str = "bilinear",
        align_corners: bool = False,
        spatial_merge_size: int = 1,
        padding: str = "border",
        kwargs: dict[str, Any] | None = None,
    ) -> tuple[Tensor, Tensor]:
        if kwargs is not None:
            indices, weights = kwargs.pop("interp_indices", None), kwargs.pop("interp_weights", None)
            if indices is not None and weights is not None:
                return indices, weights
        patches = locate_patches(grid_thw, spatial_merge_size)
        options = (num_grid_per_side, mode, align_corners, padding)
        rows, row_weights = vision_utils._interpolation_axis_taps_weights(patches.row, patches.height, *options)
        columns, column_weights = vision_utils._interpolation_axis_taps_weights(patches.column, patches.width, *options)
        indices = rows.unsqueeze(2) * num_grid_per_side + columns.unsqueeze(1)
        return indices.flatten(1), (row_weights.unsqueeze(2) * column_weights.unsqueeze(1)).flatten(1)

    return indices_and_weights


WORKAROUND = Workaround(
    reason="The start of each image is read from a slice that is one shorter than the number of images: traced with two "
    "images, the graph takes two for ever; and repeat_interleave by a tensor is not lowered (Qwen3-VL, Qwen3.5, GLM4V).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_vision_interpolation_indices_and_weights",),
    apply=interpolation,
)
