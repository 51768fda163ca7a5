"""The frame of every packed patch, without a loop over clips."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ....workarounds import Workaround
from ...images.packed import locate_patches


def frame_index(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_vision_frame_index`: int64 [patches]; 0 in an image, the number of the frame (from 1) in a clip of several."""

    @functools.wraps(original)
    def index(grid_thw: Tensor, kwargs: dict[str, Any] | None = None) -> Tensor:
        if kwargs is not None and (given := kwargs.pop("frame_index", None)) is not None:
            return given
        patches = locate_patches(grid_thw, 1)
        several = (grid_thw[:, 0] > 1).long()
        return patches.frame + several.index_select(0, patches.image)

    return index


WORKAROUND = Workaround(
    reason="The frames of packed clips are counted clip by clip, by sizes that are data (Kimi K2.5).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_vision_frame_index",),
    apply=frame_index,
)
