"""`max_pool1d` on a dynamic axis, as a 2-D pooling of height one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymInt, Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


def max_pool1d(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices or not any(isinstance(size, SymInt) for size in input.shape):
            return original(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        stride = kernel_size if stride is None else stride
        flat = F.max_pool2d(
            input.unsqueeze(-2),
            (1, _only(kernel_size)),
            (1, _only(stride)),
            (0, _only(padding)),
            (1, _only(dilation)),
            ceil_mode,
        )
        return flat.squeeze(-2)

    return pool


def _only(value: Any) -> Any:
    """The one value of an int or of a sequence of one int."""
    return value[0] if isinstance(value, tuple | list) else value


WORKAROUND = Workaround(
    reason="aten::max_pool1d reads its sizes as plain ints, which freezes the pooled axis and the batch (Canine).",
    upstream="none: no issue is known to us; max_pool2d is free of it",
    targets=("torch.nn.functional:max_pool1d",),
    apply=max_pool1d,
)
