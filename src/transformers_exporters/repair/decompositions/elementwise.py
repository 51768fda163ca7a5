"""Elementwise functions that a runtime lacks, by ones that all have."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus


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


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """The root of the sum of two squares."""
    return torch.sqrt(x * x + y * y)


def round_decimals(x: Tensor, *, decimals: int) -> Tensor:
    """Rounded to a number of decimal places."""
    scale = 10.0 ** abs(decimals)
    return torch.round(x * scale) / scale if decimals >= 0 else torch.round(x / scale) * scale


def signbit(x: Tensor) -> Tensor:
    """Whether a number is below zero; -0.0 is not, here."""
    return x < 0


def copysign(x: Tensor, y: Tensor) -> Tensor:
    """The size of one with the sign of the other."""
    size = torch.abs(x)
    return torch.where(y < 0, -size, size)


def erfc(x: Tensor) -> Tensor:
    """What `erf` leaves of 1."""
    return 1 - torch.erf(x)


def log_sigmoid(x: Tensor) -> Tensor:
    """Finite for every number; as a logarithm of a sigmoid, as converters write it, it is not from -89 on."""
    return -softplus(-x)


def bitwise_with_number(op: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, int], Tensor]:
    """A bitwise `op` of a tensor and a number, by its overload for tensors."""

    def of_number(x: Tensor, other: int) -> Tensor:
        kind = torch.result_type(x, other)
        return op(x.to(kind), torch.scalar_tensor(other, dtype=kind))

    return of_number


RULES = {
    "aten.erfc.default": erfc,
    "aten.log_sigmoid.default": log_sigmoid,
    "aten.special_erfc.default": erfc,
    "aten.bitwise_and.Scalar": bitwise_with_number(torch.bitwise_and),
    "aten.bitwise_or.Scalar": bitwise_with_number(torch.bitwise_or),
    "aten.bitwise_xor.Scalar": bitwise_with_number(torch.bitwise_xor),
    "aten.hypot.default": hypot,
    "aten.round.decimals": round_decimals,
    "aten.signbit.default": signbit,
    "aten.copysign.Tensor": copysign,
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
