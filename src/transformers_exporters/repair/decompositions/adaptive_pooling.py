"""Pooling to a number of windows that is given, over axes of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true


def average(x: Tensor, sizes: Sequence[Any]) -> Tensor:
    """The means over windows that cover the last axes evenly: a product with a matrix for each axis."""
    if all(statically_known_true(size == 1) for size in sizes):
        return x.mean([axis - len(sizes) for axis in range(len(sizes))], keepdim=True)
    for place, size in enumerate(sizes):
        axis = place - len(sizes)
        if statically_known_true(size == 1):
            x = x.mean(axis, keepdim=True)
        elif not statically_known_true(size == x.shape[axis]):
            inside = _inside(x.shape[axis], size).to(x.dtype)
            x = torch.matmul(x.transpose(axis, -1), (inside / inside.sum(-1, keepdim=True)).t()).transpose(axis, -1)
    return x


def largest_of_line(x: Tensor, sizes: Sequence[Any]) -> list[Tensor]:
    """The largest of each window of the last axis, and where it is."""
    return list(_largest(x, sizes[0]))


def largest_of_plane(x: Tensor, sizes: Sequence[Any]) -> list[Tensor]:
    """The largest of each window of the last two axes, and its place in them, counted row by row."""
    of_row, column = _largest(x, sizes[1])
    values, row = _largest(of_row.transpose(-1, -2), sizes[0])
    values, row = values.transpose(-1, -2), row.transpose(-1, -2)
    width = torch.scalar_tensor(x.shape[-1], dtype=torch.int64)
    return [values, row * width + torch.gather(column, -2, row)]


def _largest(x: Tensor, windows: Any) -> tuple[Tensor, Tensor]:
    masked = torch.where(_inside(x.shape[-1], windows), x.unsqueeze(-2), torch.finfo(x.dtype).min)
    values, places = masked.max(-1)
    return values, places


def _inside(size: Any, windows: Any) -> Tensor:
    """bool [windows, size]: which places each window covers. Neighbours overlap where they do not divide the axis."""
    index = torch.arange(windows).unsqueeze(1)
    length, count = torch.scalar_tensor(size, dtype=torch.int64), torch.scalar_tensor(windows, dtype=torch.int64)
    start = torch.div(index * length, count, rounding_mode="floor")
    end = torch.div((index + 1) * length + count - 1, count, rounding_mode="floor")
    place = torch.arange(size).unsqueeze(0)
    return (place >= start) & (place < end)


RULES = {
    "aten.adaptive_avg_pool1d.default": average,
    "aten.adaptive_avg_pool2d.default": average,
    "aten._adaptive_avg_pool2d.default": average,
    "aten.adaptive_avg_pool3d.default": average,
    "aten._adaptive_avg_pool3d.default": average,
    "aten.adaptive_max_pool1d.default": largest_of_line,
    "aten.adaptive_max_pool2d.default": largest_of_plane,
}
