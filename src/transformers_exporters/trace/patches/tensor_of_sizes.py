"""`torch.tensor` and `torch.as_tensor` of dynamic sizes: computed from the sizes, instead of what they were in the trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import SymFloat, SymInt, Tensor

from ...workarounds import Workaround


def computed(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.tensor(data, dtype=None, device=None)`, with the numbers of `data` that are sizes as scalars of the graph."""

    @functools.wraps(original)
    def tensor(data: Any, *args: Any, **kwargs: Any) -> Tensor:
        numbers = pytree.tree_leaves(data) if isinstance(data, list | tuple | SymInt | SymFloat) else []
        if not any(isinstance(n, SymInt | SymFloat) for n in numbers):
            return original(data, *args, **kwargs)
        if not all(isinstance(n, int | float | SymInt | SymFloat) for n in numbers):
            return original(data, *args, **kwargs)
        dtype = kwargs.get("dtype") or (args[0] if args else None)
        if dtype is None:
            whole = all(isinstance(n, int | SymInt) for n in numbers)
            dtype = torch.int64 if whole else torch.get_default_dtype()
        device = kwargs.get("device") or (args[1] if len(args) > 1 else None)
        scalars = [torch.scalar_tensor(n, dtype=dtype, device=device) for n in numbers]
        return torch.stack(scalars).reshape(_shape(data))

    return tensor


def _shape(data: Any) -> list[int]:
    return [len(data), *_shape(data[0])] if isinstance(data, list | tuple) else []


WORKAROUND = Workaround(
    reason="A tensor of symbolic sizes is lifted as a constant with the traced sizes, without a word (the spatial shapes of "
    "deformable attention: DeformableDetr, RT-DETR, Mask2Former, GroundingDINO).",
    upstream="none: no issue is known to us",
    targets=("torch:tensor", "torch:as_tensor"),
    apply=computed,
)
