"""`module.to(dtype)` inside of a forward, of a module that has the dtype already: nothing to do."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ....workarounds import Workaround


def to(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def unchanged(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype", args[0] if args else None)
        if len(args) + len(kwargs) == 1 and isinstance(dtype, torch.dtype):
            tensors = itertools.chain(self.parameters(), self.buffers())
            if all(tensor.dtype == dtype for tensor in tensors if tensor.is_floating_point()):
                return self
        return original(self, *args, **kwargs)

    return unchanged


WORKAROUND = Workaround(
    reason="A trace cannot put new parameters into a module (`Couldn't swap Linear.weight`), not even the same ones: routers "
    "that cast their classifier at each call (Switch Transformers, NLLB-MoE).",
    upstream="none: no issue is known to us",
    targets=("torch.nn:Module.to",),
    apply=to,
)
