"""What the names `int` and `float` stand for in modelling code during a trace."""

from __future__ import annotations

from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor

from .quotients import whole


class _Kind(type):
    """Makes a name stand for a builtin type wherever code asks whether something is one."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


class _WholeKind(_Kind):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return int(*args, **kwargs)
        (value,) = args
        if isinstance(value, Tensor) and not value.is_floating_point():
            value = value.item()  # a count that is data stays open, as after `item()` in the model's own code
        return whole(value) if isinstance(value, SymInt | SymFloat) else int(value)


class _RealKind(_Kind):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return float(*args, **kwargs)
        (value,) = args
        if isinstance(value, Tensor):
            value = value.item()
        return torch.sym_float(value) if isinstance(value, SymInt | SymFloat) else float(value)


class Whole(int, metaclass=_WholeKind):
    """`int` of a module under trace: of a dynamic size, the size itself; of a tensor, its item."""


class Real(float, metaclass=_RealKind):
    """`float` of a module under trace: of a dynamic size, the size as a fraction; of a tensor, its item."""


def plain_dtype(dtype: Any) -> Any:
    """The dtype, or the builtin type itself for what stands for it, which torch does not know."""
    return {Whole: int, Real: float}.get(dtype, dtype) if isinstance(dtype, _Kind) else dtype
