"""Row and column of every packed patch, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...images.packed import locate_patches


def position_ids(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_vision_position_ids`: int64 [patches, 2] (row, column), or [patches, 3] with the frame first."""

    @functools.wraps(original)
    def ids(
        grid_thw: Tensor, spatial_merge_size: Any, include_temporal: bool = False, kwargs: dict[str, Any] | None = None
    ) -> Tensor:
        if kwargs is not None and (given := kwargs.pop("position_ids", None)) is not None:
            return given
        patches = locate_patches(grid_thw, spatial_merge_size)
        columns = [patches.row, patches.column]
        return torch.stack([patches.frame, *columns] if include_temporal else columns, dim=-1)

    return ids


WORKAROUND = Workaround(
    reason="Vision position ids loop over the sizes of the images, which are data (Qwen2-VL to Qwen3.5, GLM4V, PaddleOCR-VL).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_vision_position_ids",),
    apply=position_ids,
)
