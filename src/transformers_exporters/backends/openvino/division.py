"""Quotients and remainders of whole numbers.

The CPU plugin (openvino 2026.4.1) divides integers as float32: a quotient is rounded towards zero, also where `Divide` is asked
for Python's rule, and is off beyond 2^24; so are `Mod` and `FloorMod`.
"""

from __future__ import annotations

from openvino import Output
from openvino import opset15 as ops

from .call import cast, constant


def quotient_to_zero(value: Output, divisor: Output) -> tuple[Output, Output]:
    """The quotient of two integers, rounded towards zero, and what is left; the two are of one type and broadcast."""
    quotient, rest = _divide(value, divisor)
    more, rest = _divide(rest, divisor)  # what the first quotient was off by
    return ops.add(quotient, more).output(0), rest


def quotient_floored(value: Output, divisor: Output) -> tuple[Output, Output]:
    """`value // divisor` and `value % divisor` by Python's rule; the two are integers of one type and broadcast."""
    quotient, rest = quotient_to_zero(value, divisor)
    zero = constant(0, value.get_element_type())
    other_sign = ops.logical_xor(ops.less(rest, zero), ops.less(divisor, zero))
    below = ops.logical_and(ops.not_equal(rest, zero), other_sign).output(0)
    quotient = ops.subtract(quotient, cast(below, value.get_element_type())).output(0)
    return quotient, ops.select(below, ops.add(rest, divisor), rest).output(0)


def _divide(value: Output, divisor: Output) -> tuple[Output, Output]:
    quotient = ops.divide(value, divisor).output(0)
    return quotient, ops.subtract(value, ops.multiply(quotient, divisor)).output(0)
