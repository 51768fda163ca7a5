"""Images cut into tiles, of which those with too many features are scaled down (LLaVA-OneVision), all of a batch at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...hf.pieces import Pieces
from .anyres import without_padding
from .packed import places


def scaled_rows(features: Tensor, sizes: Tensor, grid: Tensor, newline: Tensor | None, most: int) -> Pieces:
    """The overview of each image, then its tiles row by row without their padding, each row with a token at its end.

    As transformers' `pack_image_features` of LLaVA-OneVision: an image with more features than `most` tiles have (by more
    than a tenth a side) is resized to that many, bilinearly.

    Args:
        features: [tiles, side * side, channels], of all images, the overview of each first.
        sizes: int64 [images, 2], the images' own height and width.
        grid: int64 [images, 2], rows and columns of tiles.
        newline: [channels], or None: rows have no token at their end.
        most: Tiles of features that are kept.
    """
    area = int(features.shape[1])
    side = math.isqrt(area)
    whole = grid * side
    first = (whole - without_padding(sizes.to(torch.float64), whole)) // 2
    kept = whole - 2 * first
    ratio = (kept.prod(-1).to(torch.float64) / (most * area)).sqrt().unsqueeze(1)
    scaled = torch.where(ratio > 1.1, torch.floor_divide(kept.to(torch.float64), ratio).to(torch.int64), kept)
    counts = area + scaled[:, 0] * (scaled[:, 1] + int(newline is not None))
    image, place = places(counts)

    def of(values: Tensor) -> Tensor:
        return values.index_select(0, image)

    across = of(scaled[:, 1] + int(newline is not None)).clamp(min=1)
    row, column = (place - area) // across, (place - area) % across
    tiles = 1 + grid.prod(-1)
    start = of(tiles.cumsum(0) - tiles) * area
    packed = features.flatten(0, 1)

    def at(y: Tensor, x: Tensor) -> Tensor:
        y, x = y + of(first[:, 0]), x + of(first[:, 1])
        tile = 1 + y // side * of(grid[:, 1]) + x // side
        return packed.index_select(0, start + tile * area + y % side * side + x % side).to(torch.float32)

    top, bottom, down = _neighbours(row, of(kept[:, 0]), of(scaled[:, 0]))
    left, right, along = _neighbours(column, of(kept[:, 1]), of(scaled[:, 1]))
    upper = at(top, left) * (1 - along) + at(top, right) * along
    lower = at(bottom, left) * (1 - along) + at(bottom, right) * along
    rows = (upper * (1 - down) + lower * down).to(features.dtype)
    if newline is not None:
        rows = torch.where((column == of(scaled[:, 1])).unsqueeze(1), newline.to(features.dtype), rows)
    overview = packed.index_select(0, start + place.clamp(max=area - 1))
    return Pieces(torch.where((place < area).unsqueeze(1), overview, rows), counts, "list")


def _neighbours(place: Tensor, old: Tensor, new: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of a place among `new` the two places among `old` between which it lies, and how far: int64 and float32 [tokens, 1].

    As `interpolate(mode="bilinear")` without `align_corners`; places outside get any that is inside.
    """
    scale = old.to(torch.float32) / new.clamp(min=1).to(torch.float32)
    source = (scale * (place.to(torch.float32) + 0.5) - 0.5).clamp(min=0)
    before = torch.minimum(source.floor().to(torch.int64), old - 1)
    return before, torch.minimum(before + 1, old - 1), (source - before.to(torch.float32)).unsqueeze(1)
