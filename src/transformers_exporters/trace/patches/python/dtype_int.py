"""`torch.ones(n, dtype=int)` in modelling code whose names `int` and `float` stand for more than the types: the types again."""

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
    reason="torch takes `int` and `float` themselves for a dtype, not what stands for them in modelling code during a trace "
    "(xLSTM, BigBird, MiniMax-M3-VL).",
    upstream="none: it is our builtin_int and builtin_float that change the names",
    targets=(
        *(f"torch:{name}" for name in ("zeros", "ones", "empty", "full", "arange")),
        *(f"torch:{name}_like" for name in ("zeros", "ones", "empty", "full")),
    ),
    apply=with_dtype,
)
