"""Elementwise functions that a runtime lacks, by ones that all have."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def exp2(x: Tensor) -> Tensor:
    """2^x as e^(x ln 2)."""
    return torch.exp(x * math.log(2.0))


def trunc(x: Tensor) -> Tensor:
    """Rounded towards zero."""
    return torch.where(x < 0, torch.ceil(x), torch.floor(x))


def frac(x: Tensor) -> Tensor:
    """What rounding towards zero takes away."""
    return x - trunc(x)


def sub_scalar(x: Tensor, other: float, alpha: float = 1) -> Tensor:
    """`sub` with a number, by its overload for tensors, which takes numbers too."""
    return torch.ops.aten.sub.Tensor(x, other, alpha=alpha)


def shift_left(x: Tensor, bits: int) -> Tensor:
    """Whole numbers times a power of two."""
    return x * 2**bits


def shift_right(x: Tensor, bits: int) -> Tensor:
    """Whole numbers by a power of two, rounded down, as a shift that keeps the sign does."""
    return torch.div(x, 2**bits, rounding_mode="floor")


RULES = {
    "aten.exp2.default": exp2,
    "aten.special_exp2.default": exp2,
    "aten.trunc.default": trunc,
    "aten.fix.default": trunc,
    "aten.frac.default": frac,
    "aten.sub.Scalar": sub_scalar,
    "aten.bitwise_left_shift.Tensor_Scalar": shift_left,
    "aten.__lshift__.Scalar": shift_left,
    "aten.bitwise_right_shift.Tensor_Scalar": shift_right,
    "aten.__rshift__.Scalar": shift_right,
}
