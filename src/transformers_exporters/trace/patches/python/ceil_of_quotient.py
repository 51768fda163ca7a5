"""`math.ceil(n / k)` of sizes: in whole numbers, which every format can hold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymFloat, SymInt

from ....workarounds import Workaround
from ...idioms.quotients import divided, rounded_up, scaled
from ...idioms.repeated import repeated


def in_integers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Quotients and products of sizes that remember what they divided, and `SymFloat.__ceil__` that rounds those up."""
    # torch makes the products and the rounding of one template each, which gives them its own name.
    name = original.__name__
    return (_divide if "truediv" in name else _multiply if "binary" in name else _round_up)(original)


def _divide(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def divide(self: SymInt | SymFloat, other: Any) -> Any:
        return divided(original(self, other), self, other)

    return divide


def _multiply(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def multiply(self: Any, other: Any) -> Any:
        if isinstance(other, list):  # asked before the list repeats itself; see `patches.repeated_tensors`
            return repeated(self, other)
        return scaled(original(self, other), self, other)

    return multiply


def _round_up(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def ceil(self: SymFloat) -> Any:
        return rounded_up(self)

    return ceil


WORKAROUND = Workaround(
    reason="torch.export.save has no `math.ceil` of a size, and backends would round in floating point (Granite Speech and "
    "other encoders that cut audio into windows; the capacity of experts).",
    upstream="none: no issue is known to us",
    targets=(
        "torch:SymInt.__truediv__",
        "torch:SymInt.__mul__",
        "torch:SymInt.__rmul__",
        "torch:SymFloat.__truediv__",
        "torch:SymFloat.__mul__",
        "torch:SymFloat.__rmul__",
        "torch:SymFloat.__ceil__",
    ),
    apply=in_integers,
)
