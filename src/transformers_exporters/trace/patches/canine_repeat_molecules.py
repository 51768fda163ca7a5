"""Canine: molecules repeated to characters by one gather, instead of by a length-dependent number of repeats."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...workarounds import Workaround


def repeat_molecules(original: Callable[..., Any]) -> Callable[..., Any]:
    """`CanineModel._repeat_molecules`: [batch, molecules, hidden] to [batch, char_seq_length, hidden].

    Character `p` belongs to molecule `1 + p // rate` (molecule 0 is the extra <cls>), and the characters past the last
    whole molecule repeat the last one.
    """

    @functools.wraps(original)
    def repeat(self: Any, molecules: Tensor, char_seq_length: int) -> Tensor:
        position = torch.arange(char_seq_length, device=molecules.device)
        index = (1 + position // self.config.downsampling_rate).clamp(max=molecules.shape[1] - 1)
        return molecules.index_select(1, index)

    return repeat


WORKAROUND = Workaround(
    reason="Canine repeats the last molecule `length % rate + rate` times, which freezes the length.",
    upstream="none: torch.repeat_interleave takes a fixed number of repeats in a trace",
    targets=("transformers.models.canine.modeling_canine:CanineModel._repeat_molecules",),
    apply=repeat_molecules,
)
