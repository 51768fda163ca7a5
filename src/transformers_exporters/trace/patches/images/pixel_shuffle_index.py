"""Where the patches of each block lie in packed images, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ....workarounds import Workaround
from ...images.packed import locate_patches


def shuffle_index(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_vision_pixel_shuffle_index`: int64 [patches], block by block."""

    @functools.wraps(original)
    def index(grid_thw: Tensor, merge_size: Any, kwargs: dict[str, Any] | None = None) -> Tensor:
        if kwargs is not None and (given := kwargs.pop("pixel_shuffle_index", None)) is not None:
            return given
        patches = locate_patches(grid_thw, merge_size)
        counts = grid_thw.prod(dim=-1)
        start = (counts.cumsum(0) - counts).index_select(0, patches.image)
        return start + (patches.frame * patches.height + patches.row) * patches.width + patches.column

    return index


WORKAROUND = Workaround(
    reason="Patches are put in the order of blocks image by image, by sizes that are data (Muse Glimmer, Muse Spark).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_vision_pixel_shuffle_index",),
    apply=shuffle_index,
)
