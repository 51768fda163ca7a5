"""`one_hot(ids, n)` with a number of classes that is a size: a comparison with all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ....workarounds import Workaround


def by_comparison(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.nn.functional.one_hot`; a plain number of classes is left to it."""

    @functools.wraps(original)
    def one_hot(tensor: Tensor, num_classes: Any = -1) -> Tensor:
        if not isinstance(num_classes, SymInt):
            return original(tensor, num_classes)
        classes: Any = num_classes
        return (tensor.unsqueeze(-1) == torch.arange(classes, device=tensor.device)).to(torch.int64)

    return one_hot


WORKAROUND = Workaround(
    reason="The number of classes is a plain number to torch: `one_hot(ids, n)` fixed that axis.",
    upstream="none: no issue is known to us; torch 2.13 guards on `num_classes`",
    targets=("torch.nn.functional:one_hot",),
    apply=by_comparison,
)
