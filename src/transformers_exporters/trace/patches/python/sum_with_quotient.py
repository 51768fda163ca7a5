"""`n / k + 1` of sizes: rounds in whole numbers, as `n / k` does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymFloat

from ....workarounds import Workaround
from ...idioms.quotients import shifted


def in_integers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Sums and differences of `SymFloat` that remember what was divided."""

    @functools.wraps(original)
    def combine(self: SymFloat, other: Any) -> Any:
        total = original(self, other)
        return shifted(total, self) if isinstance(other, int | float) else total

    return combine


WORKAROUND = Workaround(
    reason="`math.ceil((length - kernel) / stride + 1)`, the number of windows of a strided convolution (the padding of audio "
    "codecs), would round in floating point, and the trace fails where another convolution follows.",
    upstream="none: no issue is known to us",
    targets=("torch:SymFloat.__add__", "torch:SymFloat.__radd__", "torch:SymFloat.__sub__"),
    apply=in_integers,
)
