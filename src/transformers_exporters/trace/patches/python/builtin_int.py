"""`int(size)` in modelling code: the size itself, instead of the number that it had in the trace."""

from __future__ import annotations

from ....workarounds import Workaround
from ...idioms.whole import Whole


def builtin_int(original: type[int]) -> type[int]:
    """The name `int` of a modelling module; numbers and strings are treated as before."""
    return Whole


WORKAROUND = Workaround(
    reason="int() of a dynamic size bakes in the traced one without a word: `int(height * scale_factor)` in InternVL, "
    "GOT-OCR2 and many vision models.",
    upstream="none: Python asks int() for a number, so torch has no other answer",
    targets=("transformers.models.*:int",),
    apply=builtin_int,
)
