"""What the name `int` stands for in modelling code during a trace."""

from __future__ import annotations

from typing import Any

from torch import SymFloat, SymInt

from .quotients import whole


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
    """`int` of a module under trace: of a dynamic size, the size itself."""


def plain_dtype(dtype: Any) -> Any:
    """The dtype, or `int` itself for what stands for it, which torch does not know."""
    return int if dtype is Whole else dtype
