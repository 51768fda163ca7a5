"""`x.view(...)` of a tensor that is contiguous at the traced sizes only, as `reshape`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ...workarounds import Workaround


def view(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def as_reshape(self: Tensor, *shape: Any, **options: Any) -> Tensor:
        if options or not shape or isinstance(shape[0], torch.dtype) or _always_contiguous(self):
            return original(self, *shape, **options)
        return self.reshape(*shape)

    return as_reshape


def _always_contiguous(x: Tensor) -> bool:
    """Whether the tensor is contiguous for every size of its dynamic axes, or has none."""
    if not any(isinstance(size, SymInt) for size in x.shape):
        return True
    expected: Any = 1
    for size, stride in zip(reversed(x.shape), reversed(x.stride()), strict=True):
        if not statically_known_true(stride == expected):
            return False
        expected = expected * size
    return True


WORKAROUND = Workaround(
    reason="A crop that keeps everything at the traced sizes makes the trace drop the `.contiguous()` behind it, and the "
    "`view` behind that fails at other sizes (window attention, cropped convolutions).",
    upstream="none: no issue is known to us",
    targets=("torch:Tensor.view",),
    apply=view,
)
