"""Sizes divided by whole numbers: kept as fractions, so that rounding them gives a whole-number expression."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch
from torch import SymFloat, SymInt
from torch.utils.weak import WeakIdKeyDictionary

#: The whole numbers behind a quotient: what is divided, and by what. By identity: comparing two quotients is a question.
_KNOWN: WeakIdKeyDictionary = WeakIdKeyDictionary()
_LARGEST_DIVISOR = 256


def divided(quotient: Any, size: Any, divisor: Any) -> Any:
    """Remember that `quotient` is `size / divisor`; returns the quotient."""
    whole = isinstance(divisor, int | SymInt) and not isinstance(divisor, bool)
    if isinstance(quotient, SymFloat) and isinstance(size, SymInt):
        if whole:
            _KNOWN[quotient] = (size, divisor)
        elif isinstance(divisor, float) and divisor > 0:
            scaled(quotient, size, 1 / divisor)
    return quotient


def scaled(product: Any, size: Any, factor: Any) -> Any:
    """Remember that `product` is `size * factor`, for a factor like 0.5 or 1.5; returns the product."""
    if isinstance(product, SymFloat) and isinstance(size, SymInt) and isinstance(factor, float) and factor > 0:
        fraction = Fraction(factor).limit_denominator(_LARGEST_DIVISOR)
        if float(fraction) == factor:
            numerator = size if fraction.numerator == 1 else size * fraction.numerator
            _KNOWN[product] = (numerator, fraction.denominator)
    return product


def rounded_up(number: SymFloat) -> SymInt | None:
    """The next whole number above, if the number is known to be a size divided by a whole number."""
    size, divisor = _KNOWN.get(number, (None, 0))
    return (size + divisor - 1) // divisor if isinstance(divisor, int) and divisor > 0 else None


def whole(number: Any) -> Any:
    """`int(number)` of a size that is not negative, or of a quotient of such: stays an expression of sizes."""
    if not isinstance(number, SymFloat):
        return number
    size, divisor = _KNOWN.get(number, (None, None))
    return torch.sym_int(number) if size is None else size // divisor
