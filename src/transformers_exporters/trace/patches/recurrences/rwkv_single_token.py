"""RWKV-4: a step of one token for a batch of several rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def of_two_tokens(original: Callable[..., Any]) -> Callable[..., Any]:
    """Does one token as the first of two: `hidden` [batch, 1, width], and a state whose last token is that one."""

    @functools.wraps(original)
    def step(self: Any, hidden: Tensor, state: Any = None, **options: Any) -> Any:
        if hidden.size(1) != 1 or state is None:
            return original(self, hidden, state=state, **options)
        *results, state = original(self, torch.cat([hidden, hidden], dim=1), state=state, **options)
        return (*(result[:, :1] for result in results), state)

    return step


WORKAROUND = Workaround(
    reason="RWKV adds a state of [batch, width] to one token's [batch, 1, width]: with several rows that is "
    "[batch, batch, width], and every row reads the others' states.",
    upstream="none: found while exporting a batched decode step; the model is right for a batch of one",
    targets=(
        "transformers.models.rwkv.modeling_rwkv:RwkvSelfAttention.extract_key_value",
        "transformers.models.rwkv.modeling_rwkv:RwkvFeedForward.forward",
    ),
    apply=of_two_tokens,
)
