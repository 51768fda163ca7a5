"""`float(size)` in modelling code: the size itself, instead of the number that it had in the trace."""

from __future__ import annotations

from ....workarounds import Workaround
from ...idioms.whole import Real


def builtin_float(original: type[float]) -> type[float]:
    """The name `float` of a modelling module; numbers and strings are treated as before."""
    return Real


WORKAROUND = Workaround(
    reason="float() of a dynamic size fixes the axis: `scale_factor=(float(height / side), float(width / side))` in DINO's positions "
    "and the code that copies them, `float(value.size(-1)) ** 0.5`.",
    upstream="none: Python asks float() for a number, so torch has no other answer",
    targets=("transformers.models.*:float",),
    apply=builtin_float,
)
