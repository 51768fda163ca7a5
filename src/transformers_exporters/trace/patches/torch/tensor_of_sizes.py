"""`torch.tensor`, `torch.as_tensor` and `x.new_tensor` of dynamic sizes and of scalars that the graph computes: computed from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import SymFloat, SymInt, Tensor

from ....workarounds import Workaround
from ...idioms.whole import plain_dtype


def computed(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.tensor(data, dtype=None, device=None)`, with the sizes and scalars in `data` as scalars of the graph."""
    if original.__name__ == "new_tensor":
        return _of_another(original)

    @functools.wraps(original)
    def tensor(data: Any, *args: Any, **kwargs: Any) -> Tensor:
        if "dtype" in kwargs:
            kwargs["dtype"] = plain_dtype(kwargs["dtype"])
        numbers = pytree.tree_leaves(data) if isinstance(data, list | tuple | SymInt | SymFloat) else []
        if not any(isinstance(n, SymInt | SymFloat) or _is_scalar(n) for n in numbers):
            return original(data, *args, **kwargs)
        if not all(isinstance(n, int | float | SymInt | SymFloat) or _is_scalar(n) for n in numbers):
            return original(data, *args, **kwargs)
        dtype = kwargs.get("dtype") or (args[0] if args else None)
        dtype = dtype or _common_dtype(numbers)
        device = kwargs.get("device") or (args[1] if len(args) > 1 else None)
        scalars = [
            n.to(dtype=dtype, device=device)
            if isinstance(n, Tensor)
            else torch.scalar_tensor(n, dtype=dtype, device=device)
            for n in numbers
        ]
        return torch.stack(scalars).reshape(_shape(data))

    return tensor


def _of_another(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(original)
    def new_tensor(self: Tensor, data: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Tensor:
        if kwargs or isinstance(data, Tensor):
            return original(self, data, dtype=dtype, device=device, **kwargs)
        return torch.tensor(data, dtype=self.dtype if dtype is None else dtype, device=device or self.device)

    return new_tensor


def _is_scalar(number: Any) -> bool:
    return isinstance(number, Tensor) and number.dim() == 0


def _common_dtype(numbers: list[Any]) -> torch.dtype:
    kinds = [n.dtype if isinstance(n, Tensor) else type(n) for n in numbers]
    if all(kind in (bool, torch.bool) for kind in kinds):
        return torch.bool
    fractions = any(
        k.is_floating_point if isinstance(k, torch.dtype) else issubclass(k, float | SymFloat) for k in kinds
    )
    return torch.get_default_dtype() if fractions else torch.int64


def _shape(data: Any) -> list[int]:
    return [len(data), *_shape(data[0])] if isinstance(data, list | tuple) else []


WORKAROUND = Workaround(
    reason="A tensor of symbolic sizes is lifted as a constant with the traced sizes, without a word (the spatial shapes of "
    "deformable attention: DeformableDetr, RT-DETR, Mask2Former, GroundingDINO); one of computed scalars is refused "
    "(GLM-Image's positions).",
    upstream="none: no issue is known to us",
    targets=("torch:tensor", "torch:as_tensor", "torch:Tensor.new_tensor"),
    apply=computed,
)
