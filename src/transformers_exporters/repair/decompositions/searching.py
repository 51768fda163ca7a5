"""Sorting and searching, by comparisons and `topk`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The `topk` of all. Equal values may come in another order, as without `stable=True` in torch."""
    values, indices = torch.topk(x, x.shape[dim], dim, largest=descending)
    return values, indices


def sort_stable(x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Stable: each value's place is the number of those that come before it."""
    if not stable:
        return sort(x, dim, descending)
    last = x.movedim(dim, -1)
    own, other = last.unsqueeze(-1), last.unsqueeze(-2)
    index = torch.arange(last.shape[-1], device=x.device)
    earlier = index.unsqueeze(0) < index.unsqueeze(1)
    before = (other > own if descending else other < own) | ((other == own) & earlier)
    place = before.sum(-1)
    order = torch.zeros_like(place).scatter(-1, place, index.expand_as(place))
    return torch.gather(last, -1, order).movedim(-1, dim), order.movedim(-1, dim)


def argsort(x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The indices of `sort`."""
    return sort(x, dim, descending)[1]


def argsort_stable(x: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    """The indices of `sort_stable`."""
    return sort_stable(x, stable=stable, dim=dim, descending=descending)[1]


def searchsorted(
    edges: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """How many edges lie below each value (or at it, from the right)."""
    if sorter is not None:
        edges = torch.gather(edges, -1, sorter)
    rows = edges if edges.dim() == 1 else edges.unsqueeze(-2)
    value = x.unsqueeze(-1)
    below = rows <= value if right or side == "right" else rows < value
    return below.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def bucketize(x: Tensor, edges: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """`searchsorted` in one row of edges."""
    return searchsorted(edges, x, out_int32=out_int32, right=right)


def isin(x: Tensor, values: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether any of the values equals each element."""
    found = (x.unsqueeze(-1) == values.flatten()).any(-1)
    return ~found if invert else found


def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> list[Tensor]:
    """The k-th smallest element along an axis, and where it is."""
    values, places = (found.narrow(dim, k - 1, 1) for found in torch.topk(x, k, dim, largest=False))
    return [values, places] if keepdim else [values.squeeze(dim), places.squeeze(dim)]


def median(x: Tensor, dim: int, keepdim: bool = False) -> list[Tensor]:
    """The element in the middle, the lower one of two, and where it is."""
    return kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def median_of_all(x: Tensor) -> Tensor:
    """The median of a tensor's elements."""
    return median(x.flatten(), 0)[0]


RULES: dict[str, Any] = {
    "aten.sort.default": sort,
    "aten.sort.stable": sort_stable,
    "aten.argsort.default": argsort,
    "aten.argsort.stable": argsort_stable,
    "aten.kthvalue.default": kthvalue,
    "aten.median.dim": median,
    "aten.median.default": median_of_all,
    "aten.searchsorted.Tensor": searchsorted,
    "aten.bucketize.Tensor": bucketize,
    "aten.isin.Tensor_Tensor": isin,
}
