"""`math.floor(n / k)` of sizes: in whole numbers, which every format can hold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymFloat

from ....workarounds import Workaround
from ...idioms.quotients import rounded_down


def in_integers(original: Callable[..., Any]) -> Callable[..., Any]:
    """`SymFloat.__floor__`."""

    @functools.wraps(original)
    def floor(self: SymFloat) -> Any:
        return rounded_down(self)

    return floor


WORKAROUND = Workaround(
    reason="torch.export.save has no `math.floor` of a size, and backends would round in floating point (the capacity of experts).",
    upstream="none: no issue is known to us",
    targets=("torch:SymFloat.__floor__",),
    apply=in_integers,
)
