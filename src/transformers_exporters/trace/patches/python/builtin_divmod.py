"""`divmod(length, block)` in modelling code: torch's sizes have `//` and `%` only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymInt

from ....workarounds import Workaround


def by_parts(original: Callable[..., Any]) -> Callable[..., Any]:
    """The name `divmod` of a modelling module; plain numbers are divided as before."""

    @functools.wraps(original)
    def divided(number: Any, divisor: Any) -> Any:
        if isinstance(number, SymInt) or isinstance(divisor, SymInt):
            return number // divisor, number % divisor
        return original(number, divisor)

    return divided


WORKAROUND = Workaround(
    reason="A size is no number for `divmod(length, block)`, and the trace fails.",
    upstream="none: no report found; torch 2.13, SymInt has no __divmod__",
    targets=("transformers.models.*:divmod",),
    apply=by_parts,
)
