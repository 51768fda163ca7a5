"""`a // b` of sizes, rounded down also where `a` is below zero: `-(-length // block)` is how many blocks a length fills."""

from __future__ import annotations

import operator
from typing import Any

from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]


def floordiv(self: Any, other: Any) -> Any:
    """The quotient of two whole numbers, the largest that is not above it.

    ONNX's `Div` cuts towards zero, and the converter writes it alone, for numbers above zero only (onnxscript 0.7.2).
    """
    return op.Div(op.Sub(self, op.Mod(self, other)), other)


TRANSLATION = {operator.floordiv: floordiv}
