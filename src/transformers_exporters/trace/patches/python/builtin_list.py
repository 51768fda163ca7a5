"""`list(batch)` in modelling code: a list whose length stays open, instead of the number that it had in the trace."""

from __future__ import annotations

from ....workarounds import Workaround
from ...idioms.pieces import Listed


def builtin_list(original: type[list[object]]) -> type[list[object]]:
    """The name `list` of a modelling module; what is neither a batch nor pieces of a tensor is listed as before."""
    return Listed


WORKAROUND = Workaround(
    reason="list() of a batch fixes its size: features of images as a list with one tensor each (LLaVA, LFM2-VL).",
    upstream="none: Python asks a list for its length, so torch has no other answer",
    targets=("transformers.models.*:list",),
    apply=builtin_list,
)
