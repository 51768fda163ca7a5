"""`adaptive_avg_pool1d(x, n)` to a number of windows that is a size, as a 2-D pooling of height one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymInt, Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


def in_two_dimensions(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.nn.functional.adaptive_avg_pool1d`; a plain number of windows is left to it."""

    @functools.wraps(original)
    def pool(input: Tensor, output_size: Any) -> Tensor:
        sizes: Any = (1, *(output_size if isinstance(output_size, tuple | list) else (output_size,)))
        if not isinstance(sizes[-1], SymInt):
            return original(input, output_size)
        return F.adaptive_avg_pool2d(input.unsqueeze(-2), sizes).squeeze(-2)

    return pool


WORKAROUND = Workaround(
    reason="aten::adaptive_avg_pool1d reads the number of windows as a plain int, which fixes that axis.",
    upstream="none: no issue is known to us; adaptive_avg_pool2d is free of it (torch 2.13)",
    targets=("torch.nn.functional:adaptive_avg_pool1d",),
    apply=in_two_dimensions,
)
