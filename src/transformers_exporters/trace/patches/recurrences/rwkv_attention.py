"""RWKV-4: the weighted key-value recurrence, in closed form with its running maximum."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...recurrences.scan import Element, blocked_scan

#: Stands for minus infinity, as in the model: finite, so that the difference of two of them is a number.
_LOWEST = -1e38


def attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """`rwkv_linear_attention`: `key`, `value` [batch, seq, width], `time_decay`, `time_first` [width].

    An element of the scan is (log decay, maximum, numerator, denominator): the sums are kept divided by the exponential of
    the maximum, so nothing overflows.
    """

    @functools.wraps(original)
    def linear(
        time_decay: Tensor,
        time_first: Tensor,
        key: Tensor,
        value: Tensor,
        state: Any = None,
        return_state: bool = False,
    ) -> tuple[Tensor, Any]:
        keys, values = key.float(), value.float()
        zero = torch.zeros_like(keys[:, 0])
        numerator, denominator, maximum = (zero, zero, zero + _LOWEST) if state is None else state
        first = (zero + _LOWEST, maximum, numerator, denominator)
        steps = (-torch.exp(time_decay.float()) + torch.zeros_like(keys), keys, values, torch.ones_like(keys))
        sequence = tuple(torch.cat([f.unsqueeze(1), s], dim=1) for f, s in zip(first, steps, strict=True))
        _, maxima, numerators, denominators = blocked_scan(_combine, sequence, (0.0, _LOWEST, 0.0, 0.0))
        current = keys + time_first
        top = torch.maximum(maxima[:, :-1], current)
        past, now = torch.exp(maxima[:, :-1] - top), torch.exp(current - top)
        output = (past * numerators[:, :-1] + now * values) / (past * denominators[:, :-1] + now)
        if return_state or state is not None:
            state = [numerators[:, -1], denominators[:, -1], maxima[:, -1]]
        return output.to(key.dtype), state

    return linear


def _combine(earlier: Element, later: Element) -> Element:
    decay, maximum, numerator, denominator = earlier
    decay_next, maximum_next, numerator_next, denominator_next = later
    top = torch.maximum(maximum + decay_next, maximum_next)
    kept, added = torch.exp(maximum + decay_next - top), torch.exp(maximum_next - top)
    decays = (decay + decay_next).clamp(min=_LOWEST)
    return decays, top, kept * numerator + added * numerator_next, kept * denominator + added * denominator_next


WORKAROUND = Workaround(
    reason="RWKV loops over the sequence in Python, which freezes its length.",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:rwkv_linear_attention",),
    apply=attention,
)
