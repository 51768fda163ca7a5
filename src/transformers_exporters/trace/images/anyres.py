"""Images cut into tiles by the best of several grids (LLaVA-NeXT), all images of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .packed import places


def best_grid(sizes: Tensor, pinpoints: Sequence[Sequence[int]], tile: int) -> Tensor:
    """Rows and columns of tiles of each image: int64 [images, 2].

    As transformers' `select_best_resolution`: the resolution in which most of the image is left; of equals the one that
    wastes least, of those the first.

    Args:
        sizes: int64 [images, 2], height and width.
        pinpoints: Resolutions to choose from, (height, width).
        tile: Side of a tile.
    """
    choices = torch.tensor([list(point) for point in pinpoints], device=sizes.device)
    original = sizes.to(torch.float64).unsqueeze(1)
    scale = (choices.to(torch.float64) / original).amin(-1, keepdim=True)
    scaled = (original * scale).to(torch.int64).prod(-1)
    kept = torch.minimum(scaled, sizes.prod(-1, keepdim=True))
    wasted = choices.prod(-1) - kept
    number = torch.arange(len(pinpoints), device=sizes.device)
    key = wasted * len(pinpoints) + number
    key = key.masked_fill(kept != kept.amax(1, keepdim=True), torch.iinfo(torch.int64).max)
    best = key.amin(1) % len(pinpoints)
    return choices.index_select(0, best) // tile


class Tokens(NamedTuple):
    """Where the tokens of all images come from: int64 [tokens] into packed features; and int64 [images], how many."""

    source: Tensor
    counts: Tensor


def packed_tokens(sizes: Tensor, grid: Tensor, side: int, newline: int) -> Tokens:
    """The overview of each image, then its tiles row by row without their padding, each row with a token at its end.

    Args:
        sizes: int64 [images, 2], the images' own height and width.
        grid: int64 [images, 2], rows and columns of tiles.
        side: Features along a side of a tile; an image has an overview and its tiles, `side * side` features each.
        newline: 1 if rows end with a token, which comes from place -1; else 0.
    """
    original, whole = sizes.to(torch.float64), grid * side
    inner = without_padding(original, whole)
    first_row, first_column = ((whole - inner) // 2).unbind(1)
    rows, columns = whole[:, 0] - 2 * first_row, whole[:, 1] - 2 * first_column
    area = side * side
    counts = area + rows * (columns + newline)
    tiles = 1 + grid.prod(-1)
    image, place = places(counts)

    def of(values: Tensor) -> Tensor:
        return values.index_select(0, image)

    across = of(columns + newline).clamp(min=1)  # a very narrow image has no column left
    row, column = (place - area) // across, (place - area) % across
    ends = column == of(columns)
    row, column = row + of(first_row), column + of(first_column)
    tile = 1 + row // side * of(grid[:, 1]) + column // side
    detail = tile * area + row % side * side + column % side
    start = of(tiles.cumsum(0) - tiles) * area
    source = start + torch.where(place < area, place, detail)
    if newline:
        source = source.masked_fill((place >= area) & ends, -1)
    return Tokens(source, counts)


def without_padding(original: Tensor, whole: Tensor) -> Tensor:
    """Height and width of the image inside of its tiles, as transformers' `unpad_image`: int64 [images, 2]."""
    height, width = original.unbind(1)
    tall, wide = whole.to(torch.float64).unbind(1)

    def rounded(value: Tensor) -> Tensor:  # int(round(value, 7))
        return (value + 0.5e-7).to(torch.int64)

    broad = width / height > wide / tall
    inner_height = torch.where(broad, rounded(height * (wide / width)), whole[:, 0])
    inner_width = torch.where(broad, whole[:, 1], rounded(width * (tall / height)))
    return torch.stack([inner_height, inner_width], dim=1)


class EachSize:
    """Stands for the size of every image in a list that is made of one number for each.

    Attributes:
        tensor: int64 [images, 2].
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __iter__(self) -> Any:
        return iter([self])

    def __len__(self) -> int:
        return 1
