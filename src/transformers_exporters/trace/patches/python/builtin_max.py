"""`max(a, b)` and `min(a, b)` of one-element tensors in modelling code: computed, not decided by the values of a sample."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def computed(original: Callable[..., Any]) -> Callable[..., Any]:
    """The name `max` or `min` of a modelling module; what is not about two or more such tensors is left as it is."""
    extreme = torch.maximum if original.__name__ == "max" else torch.minimum

    @functools.wraps(original)
    def larger_or_smaller(*values: Any, **kwargs: Any) -> Any:
        if kwargs or len(values) < 2 or not all(isinstance(v, Tensor) for v in values):
            return original(*values, **kwargs)
        first = values[0]
        if any(v.shape != first.shape or v.dtype != first.dtype for v in values) or first.shape.numel() != 1:
            return original(*values)
        return functools.reduce(extreme, values)

    return larger_or_smaller


WORKAROUND = Workaround(
    reason="max() of two tensors asks which is larger: I-BERT's scales, `max(saturation_min.abs(), saturation_max.abs())`.",
    upstream="none: Python asks for a yes or a no, so torch has no other answer",
    targets=("transformers.models.*:max", "transformers.models.*:min"),
    apply=computed,
)
