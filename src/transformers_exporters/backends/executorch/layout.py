"""How a traced tensor lies in memory."""

from __future__ import annotations

from itertools import pairwise

import torch


def is_row_major(value: torch.Tensor) -> bool:
    """Whether strides never grow from left to right. Axes of size 1 do not count; symbols count as traced."""
    strides = [
        stride.node.hint if isinstance(stride, torch.SymInt) else stride
        for size, stride in zip(value.shape, value.stride(), strict=True)
        if not (isinstance(size, int) and size == 1)
    ]
    return all(left >= right for left, right in pairwise(strides))
