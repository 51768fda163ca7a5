"""The order of window attention over packed images (Qwen2.5-VL), without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...images.packed import locate_patches


def window_index(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_vision_window_index`: merged tokens sorted by window, and the boundaries of the windows in patches."""

    @functools.wraps(original)
    def index(
        grid_thw: Tensor,
        spatial_merge_size: int,
        window_size: int,
        patch_size: int,
        kwargs: dict[str, Any] | None = None,
    ) -> tuple[Tensor, Tensor]:
        given = [(kwargs or {}).pop(name, None) for name in ("window_index", "cu_window_seqlens")]
        if given[0] is not None and given[1] is not None:
            return given[0], given[1]
        size = window_size // spatial_merge_size // patch_size
        merged = grid_thw // torch.tensor([1, spatial_merge_size, spatial_merge_size], device=grid_thw.device)
        tokens = locate_patches(merged, 1)
        across, down = (tokens.width + size - 1) // size, (tokens.height + size - 1) // size
        windows = merged[:, 0] * ((merged[:, 1] + size - 1) // size) * ((merged[:, 2] + size - 1) // size)
        first = (windows.cumsum(0) - windows).index_select(0, tokens.image)
        window = first + (tokens.frame * down + tokens.row // size) * across + tokens.column // size
        position = torch.arange(window.shape[0], device=window.device)
        # The key is unique, so that the sort need not be stable.
        order = torch.argsort(window * window.shape[0] + position)
        number = torch.arange(windows.sum().item(), device=window.device)
        ends = (window.unsqueeze(0) <= number.unsqueeze(1)).sum(1) * spatial_merge_size**2
        return order, F.pad(ends, (1, 0)).to(torch.int32)

    return index


WORKAROUND = Workaround(
    reason="The window order loops over the sizes of the images, which are data (Qwen2.5-VL, Qwen2.5-Omni, MuseGlimmer).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_vision_window_index",),
    apply=window_index,
)
