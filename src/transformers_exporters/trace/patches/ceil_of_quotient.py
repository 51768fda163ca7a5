"""`math.ceil(n / k)` of sizes: in whole numbers, which every format can hold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from torch import SymFloat, SymInt

from ...workarounds import Workaround

#: The two sizes behind a quotient.
_QUOTIENTS: WeakKeyDictionary[SymFloat, tuple[Any, Any]] = WeakKeyDictionary()


def in_integers(original: Callable[..., Any]) -> Callable[..., Any]:
    """`SymInt.__truediv__` that remembers what it divided, and `SymFloat.__ceil__` that rounds that up."""
    return _divide(original) if "truediv" in original.__name__ else _round_up(original)


def _divide(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def divide(self: SymInt, other: Any) -> Any:
        quotient = original(self, other)
        if isinstance(quotient, SymFloat) and isinstance(other, int | SymInt) and not isinstance(other, bool):
            _QUOTIENTS[quotient] = (self, other)
        return quotient

    return divide


def _round_up(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def ceil(self: SymFloat) -> Any:
        known = _QUOTIENTS.get(self)
        if known is None or not isinstance(known[1], int) or known[1] <= 0:
            return original(self)
        size, divisor = known
        return (size + divisor - 1) // divisor

    return ceil


WORKAROUND = Workaround(
    reason="torch.export.save has no `math.ceil` of a size, and backends would round in floating point (Granite Speech and "
    "other encoders that cut audio into windows).",
    upstream="none: no issue is known to us",
    targets=("torch:SymInt.__truediv__", "torch:SymFloat.__ceil__"),
    apply=in_integers,
)
