"""Autoformer: no attention mask, which its autocorrelation cannot take."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ....workarounds import Workaround


def without_mask(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def forward(self: Any, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        return original(self, hidden_states, *args, **{**kwargs, "attention_mask": None})

    return forward


WORKAROUND = Workaround(
    reason="Eager makes no mask where nothing is masked; a trace always makes one, and Autoformer views its correlations "
    "[batch * heads, length, width] as [batch, heads, length, length] to add it.",
    upstream="none: found while exporting; eager with a padded mask raises the same error",
    targets=("transformers.models.autoformer.modeling_autoformer:AutoformerAttention.forward",),
    apply=without_mask,
)
