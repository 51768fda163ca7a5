"""Images, frames and clips of different sizes packed along one axis: which token belongs to which."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Lengths(Sequence[Any]):
    """The lengths of packed segments, kept as a tensor; turned into numbers only if somebody asks for them.

    Attributes:
        tensor: int [segments].
        masked: Whether the segments of one call are to be kept apart by a mask, instead of being cut.
    """

    def __init__(self, tensor: Tensor, numbers: Callable[[], list[Any]], masked: bool) -> None:
        self.tensor = tensor
        self.masked = masked
        self._numbers = functools.cache(numbers)

    def __len__(self) -> int:
        return len(self._numbers())

    def __getitem__(self, index: Any) -> Any:
        return self._numbers()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers())


def is_column(sections: Any) -> bool:
    """Whether lengths are one tensor that stands for the length of each segment (`patches.rows_of_batch`)."""
    return (
        isinstance(sections, list | tuple)
        and len(sections) == 1
        and isinstance(sections[0], Tensor)
        and sections[0].dim() == 1
    )


def segment_of(position: Tensor, lengths: Tensor) -> Tensor:
    """The index of the segment in which each position lies: int64, shape of `position` (1-D).

    By comparison with the ends of the segments, which every backend lowers; `repeat_interleave` by a tensor is not.
    """
    return (position.unsqueeze(1) >= lengths.cumsum(0).unsqueeze(0)).sum(1)


def places(lengths: Tensor, total: Any = None) -> tuple[Tensor, Tensor]:
    """Of every position of packed segments its segment, and its place in there: both int64 [total].

    Args:
        lengths: int64 [segments].
        total: Their sum, where it is known as a size; else it is read from them, and asserted to be more than one.
    """
    if total is None:
        total = lengths.sum().item()
        torch._check(total > 1)
    position = torch.arange(total, device=lengths.device)
    segment = segment_of(position, lengths)
    return segment, position - (lengths.cumsum(0) - lengths).index_select(0, segment)


def same_segment_mask(size: Any, lengths: Tensor, dtype: torch.dtype) -> Tensor:
    """Additive attention mask [1, 1, size, size] that keeps segments apart: 0 within one, the lowest number between two."""
    segment = segment_of(torch.arange(size, device=lengths.device), lengths)
    apart = segment.unsqueeze(0) != segment.unsqueeze(1)
    mask = torch.zeros_like(apart, dtype=dtype).masked_fill(apart, torch.finfo(dtype).min)
    return mask.unsqueeze(0).unsqueeze(0)


def first_true(seen: Tensor, most: Any) -> Tensor:
    """The places of each row that are true, in their order, then those that are not: int64 [rows, most].

    By `topk` of what counts down: a running sum takes memory by the square of the row where torch takes it apart.
    """
    size = seen.shape[1]
    countdown = size - torch.arange(size, device=seen.device)
    return torch.topk(torch.where(seen, countdown, countdown - size), most, dim=1).indices


class Patches(NamedTuple):
    """For every patch of packed images, int64 [patches]: its image, frame, row and column, and the image's grid."""

    image: Tensor
    frame: Tensor
    row: Tensor
    column: Tensor
    height: Tensor
    width: Tensor


def locate_patches(grid_thw: Tensor, merge: Any) -> Patches:
    """Where every patch lies, in the order of vision encoders that merge `merge` x `merge` patches.

    Args:
        grid_thw: int64 [images, 3]: frames, rows and columns of patches.
        merge: An int, or one int per image in a tensor.
    """
    counts = grid_thw[:, 0] * grid_thw[:, 1] * grid_thw[:, 2]
    image, offset = places(counts, counts.sum().item())
    height, width = grid_thw[:, 1].index_select(0, image), grid_thw[:, 2].index_select(0, image)
    if isinstance(merge, Tensor):
        merge = merge.index_select(0, image)
    frame, within = offset // (height * width), offset % (height * width)
    block, inner = within // (merge * merge), within % (merge * merge)
    across = width // merge
    row = block // across * merge + inner // merge
    column = block % across * merge + inner % merge
    return Patches(image, frame, row, column, height, width)
