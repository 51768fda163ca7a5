"""What the name `int` stands for in modelling code during a trace."""

from __future__ import annotations

from typing import Any

from torch import SymFloat, SymInt, Tensor

from .quotients import whole


class _Kind(type):
    """Makes a name stand for `int` wherever code asks whether something is one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return int(*args, **kwargs)
        (value,) = args
        if isinstance(value, Tensor) and not value.is_floating_point():
            value = value.item()  # a count that is data stays open, as after `item()` in the model's own code
        return whole(value) if isinstance(value, SymInt | SymFloat) else int(value)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, int)


class Whole(int, metaclass=_Kind):
    """`int` of a module under trace: of a dynamic size, the size itself; of a tensor, its item."""


def plain_dtype(dtype: Any) -> Any:
    """The dtype, or `int` itself for what stands for it, which torch does not know."""
    return int if dtype is Whole else dtype
