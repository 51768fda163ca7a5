"""Reductions that run along an axis or into indexed places, by comparing every place with every element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Products of all elements up to each place: quadratic in the axis, and exact where a sum of logarithms is not."""
    last = x.to(dtype or (x.dtype if x.is_floating_point() else torch.int64)).movedim(dim, -1)
    index = torch.arange(last.shape[-1], device=x.device)
    upto = index.unsqueeze(0) <= index.unsqueeze(1)
    return torch.where(upto, last.unsqueeze(-2), 1).prod(-1).movedim(-1, dim)


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """Logarithms of sums of exponentials up to each place: quadratic in the axis, and without an overflow."""
    last = x.movedim(dim, -1)
    index = torch.arange(last.shape[-1], device=x.device)
    upto = index.unsqueeze(0) <= index.unsqueeze(1)
    return torch.where(upto, last.unsqueeze(-2), torch.finfo(x.dtype).min).logsumexp(-1).movedim(-1, dim)


def cummax(x: Tensor, dim: int) -> list[Tensor]:
    """The largest element up to each place, and where it is (the last of equal ones): quadratic in the axis."""
    return _running(x, dim, Tensor.argmax)


def cummin(x: Tensor, dim: int) -> list[Tensor]:
    """The smallest element up to each place, and where it is (the last of equal ones): quadratic in the axis."""
    return _running(x, dim, Tensor.argmin)


def _running(x: Tensor, dim: int, place: Callable[..., Tensor]) -> list[Tensor]:
    last = x.movedim(dim, -1)
    index = torch.arange(last.shape[-1], device=x.device)
    # Backwards from each place, so that the first of equal ones is the last; before the start, the first once more.
    back = torch.clamp(index.unsqueeze(1) - index.unsqueeze(0), min=0)
    seen = last[..., back]
    found = torch.clamp(index - place(seen, dim=-1), min=0)
    return [torch.gather(last, -1, found).movedim(-1, dim), found.movedim(-1, dim)]


def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Each place reduces the elements whose index names it: as many comparisons as places times elements."""
    source = source[tuple(slice(0, size) for size in index.shape)]
    places = torch.arange(x.shape[dim], device=x.device)
    hit = index.movedim(dim, -1).unsqueeze(-2) == places.unsqueeze(-1)
    values, own = source.movedim(dim, -1).unsqueeze(-2), x.movedim(dim, -1)
    touched = hit.any(-1)
    own = own[tuple(slice(0, size) for size in touched.shape[:-1])]
    base = own if include_self else torch.where(touched, torch.full_like(own, _NEUTRAL[reduce](x.dtype)), own)
    picked = torch.where(hit, values, torch.full_like(values, _NEUTRAL[reduce](x.dtype)))
    if reduce == "amax":
        result = torch.maximum(base, picked.amax(-1))
    elif reduce == "amin":
        result = torch.minimum(base, picked.amin(-1))
    elif reduce == "prod":
        result = base * picked.prod(-1)
    else:
        result = base + picked.sum(-1)
        if reduce == "mean":
            count = hit.sum(-1) + (1 if include_self else 0)
            result = result / torch.clamp(count, min=1).to(result.dtype)
    return torch.where(touched, result, own).movedim(-1, dim)


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number is there, up to the largest: the size of the result is data."""
    least = torch.full([1], minlength - 1, dtype=x.dtype, device=x.device)
    count: Any = (torch.cat([x, least]).amax(0) + 1).item()
    torch._check_is_size(count)
    if weights is None:
        return torch.zeros([count], dtype=torch.int64, device=x.device).scatter_add(0, x, torch.ones_like(x))
    weights = weights if weights.dtype == torch.float32 else weights.double()
    return torch.zeros([count], dtype=weights.dtype, device=x.device).scatter_add(0, x, weights)


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of `bins` equal parts of [min, max]; the last part includes `max`."""
    flat = x.flatten()
    low, high = (flat.amin(0), flat.amax(0)) if min == max else (flat.new_full([], min), flat.new_full([], max))
    low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    place = ((flat - low) * bins / (high - low)).floor().clamp(0, bins - 1).to(torch.int64)
    inside = ((flat >= low) & (flat <= high)).to(x.dtype)
    return torch.zeros([bins], dtype=x.dtype, device=x.device).scatter_add(0, place, inside)


def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Each row reduces the rows of `source` whose index names it."""
    axis = dim % source.dim()
    rows = index.reshape([-1 if place == axis else 1 for place in range(source.dim())]).expand(source.shape)
    return scatter_reduce(x, axis, rows, source, reduce, include_self=include_self)


_NEUTRAL = {
    "sum": lambda dtype: 0,
    "mean": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "amax": lambda dtype: torch.finfo(dtype).min if dtype.is_floating_point else torch.iinfo(dtype).min,
    "amin": lambda dtype: torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max,
}

RULES = {
    "aten.bincount.default": bincount,
    "aten.cummax.default": cummax,
    "aten.cummin.default": cummin,
    "aten.cumprod.default": cumprod,
    "aten.histc.default": histc,
    "aten.index_reduce.default": index_reduce,
    "aten.logcumsumexp.default": logcumsumexp,
    "aten.scatter_reduce.two": scatter_reduce,
}
