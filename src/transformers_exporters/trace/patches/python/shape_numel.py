"""`x.shape[1:].numel()` on dynamic axes: the product of the sizes, instead of the number that it had in the trace."""

from __future__ import annotations

import math
import sys
from typing import Any

from torch import SymInt

from ....workarounds import Workaround


class _Sizes(tuple[Any, ...]):
    """A shape that can be cut and counted; `torch.Size` allows no subclass, and counts in C."""

    def __getitem__(self, index: Any) -> Any:
        taken = super().__getitem__(index)
        return _Sizes(taken) if isinstance(index, slice) else taken

    def numel(self) -> Any:
        return math.prod(self)


def counted(original: Any) -> property:
    """The attribute `shape`, in functions that count one."""

    def shape(self: Any) -> Any:
        sizes = original.__get__(self)
        caller = sys._getframe(1)
        if "numel" in caller.f_code.co_names and caller.f_globals.get("__name__", "").startswith(
            "transformers.models."
        ):
            return _Sizes(sizes) if any(isinstance(size, SymInt) for size in sizes) else sizes
        return sizes

    return property(shape)


WORKAROUND = Workaround(
    reason="torch.Size.numel() asks each dynamic size for a number, which fixes the sizes of images (Idefics2, Idefics3, "
    "SmolVLM, ModernVBERT).",
    upstream="none: no issue is known to us",
    targets=("torch._subclasses.fake_tensor:FakeTensor.shape",),
    apply=counted,
)
