"""`len(tensor)` in modelling code: the size of its first axis, instead of the number that it had in the trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ....workarounds import Workaround


def builtin_len(original: Callable[[Any], int]) -> Callable[[Any], Any]:
    """The name `len` of a modelling module; what is not a tensor is counted as before."""

    @functools.wraps(original)
    def size(value: Any) -> Any:
        return value.shape[0] if isinstance(value, Tensor) and value.dim() else original(value)

    return size


WORKAROUND = Workaround(
    reason="len() of a tensor bakes in the traced size without a word (the batch of RT-DETR, D-FINE and other detectors: "
    "`batch_size = len(source_flatten)`).",
    upstream="none: Python asks len() for a number, so torch has no other answer",
    targets=("transformers.models.*:len",),
    apply=builtin_len,
)
