"""Scales as a whole number and a power of two (I-BERT), computed by torch instead of numpy and `decimal`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from ....workarounds import Workaround


def in_torch(original: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    @functools.wraps(original)
    def frexp(inputs: Tensor, max_bit: int = 31) -> tuple[Tensor, Tensor]:
        """int64 mantissas and float64 exponents, shape of `inputs`: `inputs` is `mantissa / 2**exponent`."""
        size = inputs.to(torch.float64).abs()
        # Of zero everything is zero; a logarithm next to a whole number may be rounded to it, so what it gives is looked at.
        power = torch.log2(size.masked_fill(size == 0, 0.5)).floor() + 1
        part = size * torch.pow(2.0, -power)
        power = power + (part >= 1).to(power.dtype) - ((part < 0.5) & (size > 0)).to(power.dtype)
        mantissa = (size * torch.pow(2.0, max_bit - power) + 0.5).floor() * inputs.sign()  # half away from zero
        return mantissa.to(torch.int64), max_bit - power

    return frexp


WORKAROUND = Workaround(
    reason="I-BERT takes scales apart in numpy and rounds them one by one as decimals, which no trace can follow.",
    upstream="none: right in eager; only a trace has no numbers",
    targets=("transformers.models.*:batch_frexp",),
    apply=in_torch,
)
