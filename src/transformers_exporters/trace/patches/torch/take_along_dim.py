"""`torch.take_along_dim` on tensors with open sizes: as the `gather` that it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymInt, Tensor

from ....workarounds import Workaround


def taken(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(original)
    def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, **kwargs: Any) -> Tensor:
        open_sizes = any(isinstance(size, SymInt) for size in (*input.shape, *indices.shape))
        if kwargs or not open_sizes or (dim is not None and input.dim() != indices.dim()):
            return original(input, indices, dim, **kwargs)
        if dim is None:
            return input.flatten().gather(0, indices.flatten())
        dim %= input.dim()
        # Along every other axis the two have one size, or one of them has 1.
        own, other = (
            [size if type(size) is int and size == 1 else -1 for size in tensor.shape] for tensor in (input, indices)
        )
        wide = [indices.shape[i] if own[i] == 1 and i != dim else -1 for i in range(input.dim())]
        long = [input.shape[i] if other[i] == 1 and i != dim else -1 for i in range(input.dim())]
        return input.expand(wide).gather(dim, indices.expand(long))

    return take_along_dim


WORKAROUND = Workaround(
    reason="take_along_dim compares sizes as numbers, which bakes in those of the trace (PP-DocLayoutV2's batch).",
    upstream="none: no issue is known to us; torch 2.13, `_take_along_dim_helper` of aten/src/ATen/native",
    targets=("torch:take_along_dim", "torch:Tensor.take_along_dim"),
    apply=taken,
)
