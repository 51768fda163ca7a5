"""`math.sqrt(size)`, `math.log(size)` and the like in modelling code: computed by the graph."""

from __future__ import annotations

import functools
import linecache
import math
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import SymFloat, SymInt

from ....workarounds import Workaround

#: What torch.export.save has no symbolic op for; computed by the op for tensors.
_OF_TENSORS = ("log", "log2", "log10", "log1p", "exp", "sin", "cos", "tanh")


def symbolic(original: ModuleType) -> Any:
    """The name `math` of a modelling module; what is not symbolic is computed as before."""
    return _Math() if original is math else original


class _Math(ModuleType):
    def __init__(self) -> None:
        super().__init__(math.__name__)
        for name in _OF_TENSORS:
            setattr(self, name, _where_symbolic(getattr(math, name), functools.partial(_by_tensor, name)))
        self.sqrt = _where_symbolic(math.sqrt, lambda number: _power(number, 0.5))
        self.isqrt = _where_symbolic(math.isqrt, lambda number: torch.sym_int(_power(number, 0.5)))
        self.pow = _where_symbolic(math.pow, _power)

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)


def _made_whole(frame: FrameType) -> bool:
    """Whether the caller's line makes a whole number of the result, a count that the graph could not guard: Autoformer's lags."""
    return "int(" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def _where_symbolic(original: Callable[..., Any], computed: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(number: Any, *args: Any) -> Any:
        open_size = isinstance(number, SymInt | SymFloat) and not _made_whole(sys._getframe(1))
        return computed(number, *args) if open_size else original(number, *args)

    return function


def _power(number: Any, power: Any) -> Any:
    return torch.sym_float(number) ** power


def _by_tensor(name: str, number: Any, base: float | None = None) -> Any:
    result = getattr(torch, name)(torch.scalar_tensor(number, dtype=torch.float64)).item()
    return result if base is None else result / math.log(base)


WORKAROUND = Workaround(
    reason="A function of `math` asks a size for its number, which fixes the axis: attention scaled by `math.log(length)` or "
    "`math.sqrt(length)`.",
    upstream="none: the functions of `math` take numbers, so torch has no other answer",
    targets=("transformers.models.*:math",),
    apply=symbolic,
)
