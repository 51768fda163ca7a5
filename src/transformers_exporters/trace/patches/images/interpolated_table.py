"""A table of positions resampled to the size of every packed image, without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import vision_utils

from ....hf.replaced import replaced
from ....workarounds import Workaround
from ...images.packed import locate_patches

#: What a forward calls that resamples its table once for each image.
_NAMED = frozenset(("interpolate_pos_encoding", "repeat", "append"))
_METHOD = "interpolate_pos_encoding"


class _Resampling(NamedTuple):
    """How a module resamples: its table [1, channels, rows, columns], the mode, and rows of the result per row asked for.

    Attributes:
        table: What is resampled.
        mode: `bilinear` or `bicubic`.
        align_corners: As in `interpolate`.
        more: How much the scale exceeds that of the size asked for, in rows; HY-V4 adds a tenth of a row.
    """

    table: Tensor
    mode: str
    align_corners: bool
    more: float


def interpolated(original: Callable[..., Any]) -> Callable[..., Any]:
    """A forward of patches and `grid_thw` that adds resampled positions, told by what it calls; others are left alone."""
    code = getattr(original, "__code__", None)
    if code is None or not _NAMED.issubset(code.co_names) or "grid_thw" not in code.co_varnames:
        return original

    @functools.wraps(original)
    def forward(self: Any, pixel_values: Tensor, grid_thw: Any) -> Any:
        if not isinstance(grid_thw, Tensor) or (how := _resampling(self)) is None:
            return original(self, pixel_values, grid_thw)
        patches = locate_patches(grid_thw, 1)
        taps = []
        for place, size, side in zip(patches[2:4], patches[4:6], how.table.shape[2:], strict=True):
            if how.more:  # torch copies along an axis that keeps its size, whatever the scale says (`bilinear`)
                copied = (size == side) if how.mode == "bilinear" else torch.zeros_like(size, dtype=torch.bool)
                size = torch.where(copied, size, size + how.more)
            taps.append(vision_utils._interpolation_axis_taps_weights(place, size, side, how.mode, how.align_corners))
        (rows, row_weights), (columns, column_weights) = taps
        indices = (rows.unsqueeze(2) * how.table.shape[3] + columns.unsqueeze(1)).flatten(1)
        weights = (row_weights.unsqueeze(2) * column_weights.unsqueeze(1)).flatten(1)
        table = how.table[0].flatten(1).transpose(0, 1)
        picked = table.index_select(0, indices.flatten()).reshape(*indices.shape, -1)
        positions = (picked * weights.unsqueeze(-1)).sum(1).unsqueeze(0)
        # The loop runs once, over one image that stands for all.
        with replaced(self, lambda embeddings, *size: positions.to(embeddings.dtype), _METHOD):
            return original(self, pixel_values, [(1, 1, 1)])

    return forward


def _resampling(module: Any) -> _Resampling | None:
    """What the module's own method asks of `interpolate`; None if that is more than one resampling of a table."""
    asked: list[tuple[Tensor, dict[str, Any]]] = []

    def interpolate(table: Tensor, size: Any = None, scale_factor: Any = None, **options: Any) -> Tensor:
        asked.append((table, {"size": size, "scale": scale_factor, **options}))
        return table

    side = 7  # any size will do: the answer is the same for all
    functional: Any = torch.nn.functional
    with replaced(functional, interpolate, "interpolate"):
        getattr(module, _METHOD)(torch.empty(1, 1), side, side)
    if len(asked) != 1:
        return None
    table, options = asked[0]
    mode, scale = options.get("mode"), options["scale"]
    if mode not in ("bilinear", "bicubic") or options.get("antialias") or table.dim() != 4:
        return None
    more = 0.0
    if scale is not None:
        more = round(float(scale[0]) * int(table.shape[2]) - side, 6)
    return _Resampling(table, mode, bool(options.get("align_corners")), more)


WORKAROUND = Workaround(
    reason="A table of positions is resampled for each image of a batch in a loop, which fixes their number and their sizes "
    "(HunYuan-VL, HY-V4).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*PatchEmbed.forward",),
    apply=interpolated,
)
