"""Time series padded or cut to one length (TimesFM): a batch of them at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround

#: What a `_preprocess` of this kind has.
_NAMED = frozenset(("context_len", "horizon_len", "cat", "stack"))


def equal(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_preprocess` of a list of series; every other one is left alone."""
    if not _NAMED.issubset(original.__code__.co_names):
        return original

    @functools.wraps(original)
    def preprocess(self: Any, inputs: Sequence[Tensor], freq: Any = None, context_len: int | None = None) -> Any:
        if all(series.dim() == 1 for series in inputs):
            return original(self, inputs, freq, context_len) if context_len else original(self, inputs, freq)
        if len(inputs) != 1:
            raise TypeError("a moving average of time series is not traced for a batch: leave `window_size` out")
        series = inputs[0].T
        count, length = series.shape
        width = self.context_len if context_len is None else context_len
        # Longer by what may be missing, and cut at the front to what is wanted: right for every length.
        values = F.pad(series, (width, 0))[:, -width:]
        position = torch.arange(width + self.horizon_len, device=series.device)
        padding = (position < width - length).to(series.dtype).expand(count, -1)
        if freq is None:
            return values, padding
        kinds = torch.as_tensor(freq, dtype=torch.int32, device=series.device).reshape(-1, 1)
        return values, padding, kinds if isinstance(freq, Tensor) else kinds[:1].expand(count, 1)

    return preprocess


WORKAROUND = Workaround(
    reason="Time series are padded to one length in a loop over the batch, which fixes the batch (TimesFM, TimesFM 2.5).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*._preprocess",),
    apply=equal,
)
