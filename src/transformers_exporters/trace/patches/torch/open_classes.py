"""`one_hot(ids, n)` and `adaptive_avg_pool2d(x, sizes)` with a number that is a size: by a comparison, by a product."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ....workarounds import Workaround


def by_comparison(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """One of the functions of `_WRITTEN`; numbers that are plain are left to it."""
    written = _WRITTEN[original.__name__]

    @functools.wraps(original)
    def function(input: Tensor, number: Any = -1, **kwargs: Any) -> Tensor:
        number = kwargs.get("num_classes", kwargs.get("output_size", number))
        parts = number if isinstance(number, tuple | list) else (number,)
        if any(isinstance(part, SymInt) for part in parts):
            return written(input, number)
        return original(input, number)

    return function


def _one_hot(ids: Tensor, classes: Any) -> Tensor:
    return (ids.unsqueeze(-1) == torch.arange(classes, device=ids.device)).to(torch.int64)


def _pooled(x: Tensor, sizes: Any, rank: int) -> Tensor:
    """The mean over each of the parts, which may overlap by a place, axis by axis."""
    sizes = sizes if isinstance(sizes, tuple | list) else (sizes,) * rank
    for axis, new in zip(range(-rank, 0), sizes, strict=True):
        old: Any = x.shape[axis]
        if new is None:
            continue
        part, place = torch.arange(new, device=x.device).unsqueeze(1), torch.arange(old, device=x.device)
        first, end = part * old // new, ((part + 1) * old + new - 1) // new
        weights = ((place >= first) & (place < end)).to(x.dtype) / (end - first).to(x.dtype)
        x = torch.matmul(x.transpose(axis, -1), weights.transpose(0, 1)).transpose(axis, -1)
    return x


_WRITTEN: dict[str, Callable[..., Tensor]] = {
    "one_hot": _one_hot,
    "adaptive_avg_pool1d": functools.partial(_pooled, rank=1),
    "adaptive_avg_pool2d": functools.partial(_pooled, rank=2),
    "adaptive_avg_pool3d": functools.partial(_pooled, rank=3),
}

WORKAROUND = Workaround(
    reason="Numbers of classes and of parts are plain numbers to torch: `one_hot(ids, n)` and a pooling to the size of another map "
    "fixed that axis.",
    upstream="none: no issue is known to us; torch 2.13 guards on `num_classes` and on the output size",
    targets=tuple(f"torch.nn.functional:{name}" for name in _WRITTEN),
    apply=by_comparison,
)
