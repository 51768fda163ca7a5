"""`int(size)` in modelling code: the size itself, instead of the number that it had in the trace."""

from __future__ import annotations

from typing import Any

from torch import SymFloat, SymInt

from ...workarounds import Workaround
from ..quotients import whole


class _Kind(type):
    """Makes a name stand for `int` wherever code asks whether something is one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], SymInt | SymFloat):
            return whole(args[0])
        return int(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, int)


class Whole(int, metaclass=_Kind):
    """`int` of a module under trace."""


def builtin_int(original: type[int]) -> type[int]:
    """The name `int` of a modelling module; numbers, strings and tensors are treated as before."""
    return Whole


WORKAROUND = Workaround(
    reason="int() of a dynamic size bakes in the traced one without a word: `int(height * scale_factor)` in InternVL, "
    "GOT-OCR2 and many vision models.",
    upstream="none: Python asks int() for a number, so torch has no other answer",
    targets=("transformers.models.*:int",),
    apply=builtin_int,
)
