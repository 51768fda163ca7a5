"""Canine: attention within chunks of 128 characters as one masked attention, instead of a Python loop over chunks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """`CanineAttention.forward` whose local form masks the other chunks with minus infinity.

    Padding inside a chunk is masked with the dtype's lowest finite value, as the model does; so a chunk that is all
    padding still spreads its attention over itself alone. The cost is quadratic in the length, like the model's final
    character layer, which attends to everything.
    """

    @functools.wraps(original)
    def forward(
        self: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, output_attentions: bool | None = False
    ) -> Any:
        width = self.attend_from_chunk_width
        same = width == self.attend_from_chunk_stride == self.attend_to_chunk_width == self.attend_to_chunk_stride
        special = self.always_attend_to_first_position or self.first_position_attends_to_all
        if not self.local or not same or special or output_attentions or attention_mask is None:
            return original(self, hidden_states, attention_mask, output_attentions)
        chunk = torch.arange(hidden_states.shape[1], device=hidden_states.device) // width
        lowest = torch.finfo(hidden_states.dtype).min
        additive = (1.0 - attention_mask.to(hidden_states.dtype)) * lowest
        additive = additive.masked_fill(chunk[:, None] != chunk[None, :], float("-inf"))
        attended = self.self(hidden_states, hidden_states, additive.unsqueeze(1), output_attentions)
        return (self.output(attended[0], hidden_states),)

    return forward


WORKAROUND = Workaround(
    reason="Canine cuts its first layer's sequence into chunks in a Python loop, which freezes the length.",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.canine.modeling_canine:CanineAttention.forward",),
    apply=attention,
)
