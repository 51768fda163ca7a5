"""`torch.linspace` with a dynamic number of steps, from `arange`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ....workarounds import Workaround


def linspace(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def spaced(start: Any, end: Any, steps: Any = None, **options: Any) -> Tensor:
        if not isinstance(steps, SymInt) or options.get("out") is not None:
            return original(start, end, steps, **options)
        dtype = options.get("dtype") or torch.get_default_dtype()
        options.pop("dtype", None)
        counted = torch.arange(steps, **options)  # type: ignore[call-overload]
        index = counted.to(torch.float32 if dtype.itemsize <= 4 else torch.float64)
        last = torch.sym_max(steps - 1, 1)
        step = (end - start) / last
        # Like the kernel, count from the nearer end, so that both ends are exact.
        return torch.where(index < (steps + 1) // 2, start + step * index, end - step * (steps - 1 - index)).to(dtype)

    return spaced


WORKAROUND = Workaround(
    reason="torch.linspace takes its number of steps as a plain int, which freezes the axis it is taken from "
    "(reference points and grids of detection models).",
    upstream="none: no issue is known to us",
    targets=("torch:linspace",),
    apply=linspace,
)
