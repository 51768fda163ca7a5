"""CPM-Ant: its mask of left padding by `arange`, not by a list of numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def attention_mask(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_prepare_attention_mask`: [batch, seq, seq] in the dtype of `context`; all arguments [batch, seq], `length` [batch]."""

    @functools.wraps(original)
    def mask(self: Any, input_ids: Tensor, span: Tensor, context: Tensor, length: Tensor) -> Tensor:
        size = input_ids.shape[1]
        position = torch.arange(size, device=input_ids.device)
        causal = position[None, :] <= position[:, None]
        visible = context[:, None, :] | (context[:, :, None].logical_not() & causal)
        visible = visible & (span[:, None, :] == span[:, :, None])
        real = (position < self.prompt_length) | (size - 1 - position < length[:, None])
        return visible & real[:, :, None] & real[:, None, :]

    return mask


WORKAROUND = Workaround(
    reason="CPM-Ant counts positions in a Python list, which freezes the length of the sequence.",
    upstream="none: the list is right in eager; only a trace unrolls it",
    targets=("transformers.models.cpmant.modeling_cpmant:CpmAntModel._prepare_attention_mask",),
    apply=attention_mask,
)
