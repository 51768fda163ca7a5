"""`round(number)` and `round(number, digits)` of sizes and values in modelling code: in ops that a saved graph may hold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymFloat, SymInt
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ....workarounds import Workaround
from ...idioms.quotients import rounded as rounded_quotient


def builtin_round(original: Callable[..., Any]) -> Callable[..., Any]:
    """The name `round` of a modelling module; what is not symbolic is rounded as before.

    Halves go to the even neighbour, as Python's do, if the number is a size by a whole number; of other numbers they go
    away from zero.
    """

    @functools.wraps(original)
    def rounded(number: Any, ndigits: int | None = None) -> Any:
        if isinstance(number, SymInt) and (ndigits is None or ndigits >= 0):
            return number
        if not isinstance(number, SymFloat):
            return original(number, ndigits)
        if ndigits is None and (nearest := rounded_quotient(number)) is not None:
            return nearest
        scale = 10.0 ** (ndigits or 0)
        scaled: Any = number * scale  # type: ignore[operator]
        # `int` cuts towards zero, and is the only rounding that torch.export.save knows.
        if statically_known_true(scaled >= 0):
            whole: Any = torch.sym_int(scaled + 0.5)
        else:
            whole = torch.sym_int(torch.sym_max(scaled, 0.0) + 0.5) - torch.sym_int(torch.sym_max(-scaled, 0.0) + 0.5)
        return whole if ndigits is None else whole / scale

    return rounded


WORKAROUND = Workaround(
    reason="torch.export.save has no `round`: `int(round(height * scale, 7))` crops the padding off an image (LLaVA-NeXT-Video, "
    "LLaVA-OneVision, Granite Vision).",
    upstream="none: no issue is known to us",
    targets=("transformers.models.*:round",),
    apply=builtin_round,
)
