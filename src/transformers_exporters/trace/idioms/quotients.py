"""Sizes divided by whole numbers: kept as fractions, so that rounding them gives a whole-number expression."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch
from torch import SymFloat, SymInt
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils.weak import WeakIdKeyDictionary

#: The whole numbers behind a quotient: what is divided, and by what. By identity: comparing two quotients is a question.
_KNOWN: WeakIdKeyDictionary = WeakIdKeyDictionary()
_LARGEST_DIVISOR = 256


def divided(quotient: Any, size: Any, divisor: Any) -> Any:
    """Remember that `quotient` is `size / divisor`; returns the quotient."""
    if isinstance(divisor, float):
        return scaled(quotient, size, 1 / divisor) if divisor > 0 else quotient
    numerator, denominator = _known(size)
    if isinstance(quotient, SymFloat) and numerator is not None and not isinstance(divisor, bool | SymFloat):
        _KNOWN[quotient] = (numerator, denominator * divisor)
    return quotient


def scaled(product: Any, size: Any, factor: Any) -> Any:
    """Remember that `product` is `size * factor`, for a factor like 0.5 or 1.5; returns the product."""
    numerator, denominator = _known(size)
    if isinstance(product, SymFloat) and numerator is not None and isinstance(factor, float | int) and factor > 0:
        fraction = Fraction(factor).limit_denominator(_LARGEST_DIVISOR)
        if float(fraction) == factor:
            numerator = numerator if fraction.numerator == 1 else numerator * fraction.numerator
            _KNOWN[product] = (numerator, denominator * fraction.denominator)
    return product


def shifted(total: Any, quotient: SymFloat) -> Any:
    """Remember that `total` is the quotient plus a whole number; returns the total."""
    size, divisor = _KNOWN.get(quotient, (None, 1))
    if size is not None and isinstance(total, SymFloat):
        more = total.node.expr - quotient.node.expr
        if more.is_number and float(more).is_integer():
            _KNOWN[total] = (size + int(more) * divisor, divisor)
    return total


def _known(number: Any) -> tuple[Any, Any]:
    """What a size, or a quotient of one, is a quotient of; (None, 1) of what is neither."""
    return (number, 1) if isinstance(number, SymInt) else _KNOWN.get(number, (None, 1))


def rounded_up(number: SymFloat) -> Any:
    """The next whole number above."""
    size, divisor = _KNOWN.get(number, (None, 0))
    if size is not None and isinstance(divisor, int) and divisor > 0:
        return (size + divisor - 1) // divisor
    cut: Any = torch.sym_int(number)
    return cut + torch.sym_ite(number > cut, 1, 0)


def rounded_down(number: SymFloat) -> Any:
    """The next whole number below."""
    size, divisor = _KNOWN.get(number, (None, 0))
    if size is not None:
        return size // divisor
    cut: Any = torch.sym_int(number)
    return cut - torch.sym_ite(number < cut, 1, 0)


def cut_product(size: Any, factor: Any) -> tuple[Any, bool]:
    """The whole part of a size times a factor that is not negative, and whether the product is known to have no other."""
    numerator, denominator = _known(factor)
    if numerator is not None:
        return size * numerator // denominator, statically_known_true(size * numerator % denominator == 0)
    product = size * factor
    return (whole(product) if isinstance(product, SymFloat) else int(product)), False


def rounded(number: SymFloat) -> Any:
    """The nearest whole number, of two the even one; None where the number is not known to be a size by a whole number."""
    size, divisor = _KNOWN.get(number, (None, 0))
    if size is None or not isinstance(divisor, int) or divisor <= 0:
        return None
    nearest, rest = (2 * size + divisor) // (2 * divisor), (2 * size + divisor) % (2 * divisor)
    return nearest if divisor % 2 else nearest - torch.sym_max(1 - rest, 0) * (nearest % 2)


def whole(number: Any) -> Any:
    """`int(number)` of a size that is not negative, or of a quotient of such: stays an expression of sizes."""
    if not isinstance(number, SymFloat):
        return number
    size, divisor = _KNOWN.get(number, (None, None))
    return torch.sym_int(number) if size is None else size // divisor
