"""`max(a, b)` and `min(a, b)` of one-element tensors, of fractions that are data, and of three sizes, in modelling code.

They are computed, not decided by the values of a sample. Of two sizes torch.export computes them itself.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from ....workarounds import Workaround


def computed(original: Callable[..., Any]) -> Callable[..., Any]:
    """The name `max` or `min` of a modelling module; what is not about two or more such values is left as it is."""
    extreme = torch.maximum if original.__name__ == "max" else torch.minimum

    @functools.wraps(original)
    def larger_or_smaller(*values: Any, **kwargs: Any) -> Any:
        if not kwargs and len(values) > 1 and _has_fraction_of_data(values):
            scalars = [torch.scalar_tensor(value, dtype=torch.float64) for value in values]
            return functools.reduce(extreme, scalars).item()
        in_place = getattr(builtins, original.__name__)  # torch.export replaces it while it traces
        if kwargs or len(values) < 2 or not all(isinstance(v, Tensor) for v in values):
            sizes = not kwargs and len(values) > 2 and all(isinstance(v, int | SymInt) for v in values)
            return functools.reduce(in_place, values) if sizes else in_place(*values, **kwargs)
        first = values[0]
        if any(v.shape != first.shape or v.dtype != first.dtype for v in values) or first.shape.numel() != 1:
            return in_place(*values)
        return functools.reduce(extreme, values)

    return larger_or_smaller


def _has_fraction_of_data(values: tuple[Any, ...]) -> bool:
    if not all(isinstance(value, int | float | SymInt | SymFloat) for value in values):
        return False
    return any(isinstance(value, SymFloat) and has_free_unbacked_symbols(value) for value in values)


WORKAROUND = Workaround(
    reason="max() of tensors asks which is larger: I-BERT's scales, `max(saturation_min.abs(), saturation_max.abs())`; one of a "
    "fraction that is data, `max(1.0, math.log(length) / ...)`, and of three sizes too.",
    upstream="none: torch.export's own `_override_builtin_ops` takes two tensors or two sizes (torch 2.13)",
    targets=("transformers.models.*:max", "transformers.models.*:min"),
    apply=computed,
)
