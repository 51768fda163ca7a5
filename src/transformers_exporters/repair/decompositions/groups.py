"""What is there, and how often: results whose size is data."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask holds, in a line."""
    x, mask = torch.broadcast_tensors(x, mask)
    return x[mask]


def unique(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> list[Tensor]:
    """The distinct elements in order, for each element which of them it is, and how often each is there."""
    flat, order = torch.sort(x.flatten())
    values, group, counts = _runs(flat)
    inverse = torch.zeros_like(order).scatter(0, order, group).reshape(x.shape)
    return [values, inverse if return_inverse else _nothing(), counts if return_counts else _nothing()]


def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> list[Tensor]:
    """The first of each run of equal elements, for each element in which run it is, and the length of each run.

    Raises:
        NotImplementedError: For runs along one axis of several.
    """
    if dim is not None and x.dim() > 1:
        raise NotImplementedError("runs along an axis")
    values, group, counts = _runs(x.flatten())
    return [
        values,
        group.reshape(x.shape) if return_inverse else _nothing(),
        counts if return_counts else _nothing(),
    ]


def _nothing() -> Tensor:
    """What the ops return in the place of a result that was not asked for."""
    return torch.zeros([0], dtype=torch.int64)


def _runs(line: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    first = torch.ones_like(line[:1], dtype=torch.bool)
    starts = torch.cat([first, line[1:] != line[:-1]])
    group = starts.to(torch.int64).cumsum(0) - 1
    values = line[starts]
    counts = torch.zeros_like(values, dtype=torch.int64).scatter_add(0, group, torch.ones_like(group))
    return values, group, counts


def repeat_interleave(repeats: Tensor, *, output_size: Any = None) -> Tensor:
    """Each position of `repeats` [n] as often as it says, in order: [output_size], by default their sum."""
    if output_size is None:
        output_size = repeats.sum().item()
        torch._check_is_size(output_size)
    return group_of(repeats.cumsum(0) - repeats, output_size).to(repeats.dtype)


def group_of(starts: Tensor, count: Any) -> Tensor:
    """In which group each of `count` places lies, where the groups begin at `starts`, in order: int64 [count]."""
    # One place more, where empty groups at the end begin.
    begun = torch.zeros([count + 1], dtype=torch.int64).index_add(0, starts.long(), torch.ones_like(starts.long()))
    return begun.cumsum(0).narrow(0, 0, count) - 1


RULES = {
    "aten.repeat_interleave.Tensor": repeat_interleave,
    "aten.masked_select.default": masked_select,
    "aten._unique2.default": unique,
    "aten.unique_consecutive.default": unique_consecutive,
}
