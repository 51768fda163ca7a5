"""`torch.triu_indices(n, n)` and `torch.tril_indices(n, n)` of a dynamic size: the places of a triangle of ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ....workarounds import Workaround


def of_open_size(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    cut = original.__name__.removesuffix("_indices")

    @functools.wraps(original)
    def indices(row: Any, col: Any, offset: int = 0, **options: Any) -> Tensor:
        if not isinstance(row, SymInt) and not isinstance(col, SymInt):
            return original(row, col, offset, **options)
        ones = torch.ones(row, col, dtype=torch.bool, device=options.get("device"))
        places = getattr(ones, cut)(offset).nonzero()
        away = offset if cut == "triu" else -offset
        if row == col and 0 <= away <= 1:  # how many there are is known then
            torch._check(places.shape[0] == (row - away) * (row - away + 1) // 2)
        return places.transpose(0, 1).to(options.get("dtype", torch.int64))

    return indices


WORKAROUND = Workaround(
    reason="The shape of the result is computed with plain numbers, which freezes the size without a word (pairs of atoms, "
    "interactions of features).",
    upstream="none: no issue is known to us",
    targets=("torch:triu_indices", "torch:tril_indices"),
    apply=of_open_size,
)
