"""`torch.ones(n, dtype=int)` in modelling code whose name `int` stands for more than the type: the type again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....workarounds import Workaround
from ...idioms.whole import plain_dtype


def with_dtype(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def created(*args: Any, **kwargs: Any) -> Any:
        if "dtype" in kwargs:
            kwargs["dtype"] = plain_dtype(kwargs["dtype"])
        return original(*args, **kwargs)

    return created


WORKAROUND = Workaround(
    reason="torch takes `int` itself for a dtype, not what stands for it in modelling code during a trace (xLSTM, BigBird, "
    "MiniMax-M3-VL).",
    upstream="none: it is our builtin_int that changes the name",
    targets=("torch:zeros", "torch:ones", "torch:full", "torch:arange"),
    apply=with_dtype,
)
