"""A sliding-window cache layer drops old positions with a negative slice, which fixes a branch of the length."""

from collections.abc import Callable
from typing import Any

import torch

from ...workarounds import Workaround


def crop_by_symbol(original: Callable[..., Any]) -> Callable[..., Any]:
    def update(self: Any, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.record_past:
            return original(self, key_states, value_states, *args, **kwargs)
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.cumulative_length += key_states.shape[-2]
        keys = torch.cat([self.keys, key_states], dim=-2)
        values = torch.cat([self.values, value_states], dim=-2)
        # `x[-n:]` asks whether x is longer than n; Max keeps both answers in the graph.
        start = torch.sym_max(keys.shape[-2] - (self.sliding_window - 1), 0)
        self.keys, self.values = keys[:, :, start:, :], values[:, :, start:, :]
        return keys, values

    return update


WORKAROUND = Workaround(
    reason="Cropping a sliding-window cache with a negative slice bounds the sequence to the window of the traced side.",
    upstream="none: a consequence of slicing a symbolic length with a negative start, which torch must resolve at trace.",
    targets=("transformers.cache_utils:DynamicSlidingWindowLayer.update",),
    apply=crop_by_symbol,
)
