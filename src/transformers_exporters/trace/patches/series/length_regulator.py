"""Phonemes repeated as long as they last (FastSpeech 2): one gather, instead of a loop over the batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from ....workarounds import Workaround


def regulated(original: Callable[..., Any]) -> Callable[..., Any]:
    return _within_table(original) if original.__name__ == "extend_pos_enc" else _regulator(original)


def _within_table(original: Callable[..., Any]) -> Callable[..., Any]:
    """The table of positions as it is: whether speech is longer than that (58 s) is data, and is asserted."""

    @functools.wraps(original)
    def extend(self: Any, x: Tensor, pos_enc: Tensor | None = None) -> Tensor:
        if pos_enc is not None and has_free_unbacked_symbols(x.shape[1]):
            torch._check(2 * x.shape[1] - 1 <= pos_enc.shape[1])
        table: Tensor = original(self, x, pos_enc)
        return table

    return extend


def _regulator(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def repeated(encoded_embeddings: Tensor, duration_labels: Tensor, speaking_speed: float = 1.0) -> Tensor:
        if speaking_speed <= 0:
            return original(encoded_embeddings, duration_labels, speaking_speed)
        if speaking_speed != 1.0:
            duration_labels = torch.round(duration_labels.float() * speaking_speed).long()
        # In place as in the model, which returns the durations too.
        duration_labels.masked_fill_(duration_labels.sum() == 0, 1)
        ends = duration_labels.cumsum(1)
        length = ends[:, -1].max().item()
        torch._check(length > 1)
        position = torch.arange(length, device=ends.device)
        phoneme = (position.reshape(1, -1, 1) >= ends.unsqueeze(1)).sum(-1)
        inside = phoneme < ends.shape[1]
        index = phoneme.clamp(max=ends.shape[1] - 1).unsqueeze(-1).expand(-1, -1, encoded_embeddings.shape[-1])
        return (encoded_embeddings.gather(1, index) * inside.unsqueeze(-1)).to(torch.float)

    return repeated


WORKAROUND = Workaround(
    reason="Phonemes are repeated row by row, as often as durations say, which are data (FastSpeech2Conformer).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:length_regulator", "transformers.models.*:*.extend_pos_enc"),
    apply=regulated,
)
