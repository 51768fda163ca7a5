"""Arithmetic on sizes (torch's symbolic numbers): int64 or float32 scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from openvino import Output, Type
from openvino import opset15 as ops
from torch.utils._sympy.value_ranges import bound_sympy

from ..call import Call, Translation, cast, constant
from ..division import quotient_floored


def _kind(call: Call) -> Type:
    """Integers stay integers; one float among the operands makes the operation one of floats."""
    values = [call.traced(i) for i in range(len(call.node.args))]
    return Type.f32 if any(isinstance(v, float | torch.SymFloat) for v in values) else Type.i64


def _binary(make: Callable[..., Any]) -> Translation:
    def translate(call: Call) -> Output:
        kind = _kind(call)
        return make(call.tensor(0, kind), call.tensor(1, kind)).output(0)

    return translate


def _truediv(call: Call) -> Output:
    return ops.divide(call.tensor(0, Type.f32), call.tensor(1, Type.f32)).output(0)


def _floordiv(call: Call) -> Output:
    kind = _kind(call)
    value, divisor = call.tensor(0, kind), call.tensor(1, kind)
    if kind == Type.f32:
        return ops.floor(ops.divide(value, divisor)).output(0)
    # OpenVINO folds a size that is known, or its bounds, by Python's rule where `Divide` is told to.
    known = all(map(_is_size, (call.traced(0), call.traced(1))))
    return ops.divide(value, divisor, "numpy").output(0) if known else quotient_floored(value, divisor)[0]


def _is_size(value: Any) -> bool:
    """Whether a number is never negative, as sizes are."""
    if not isinstance(value, torch.SymInt):
        return bool(value >= 0)
    lower = bound_sympy(value.node.expr, value.node.shape_env.var_to_range).lower
    return bool(lower.is_number and lower >= 0)


def _modulo(call: Call) -> Output:
    """The remainder with the divisor's sign, as in Python.

    Not `FloorMod`: OpenVINO takes the remainders of a size's bounds for the bounds of its remainder (openvino 2026.4.1), and
    folds `size % 4` to 0 for a size of 4 to 512. The bounds of the difference are wide, and no size may be negative.
    """
    kind = _kind(call)
    value, divisor = call.tensor(0, kind), call.tensor(1, kind)
    rest = ops.subtract(value, ops.multiply(_floordiv(call), divisor)).output(0)
    literal = call[1]
    return ops.maximum(rest, constant(0, kind)).output(0) if isinstance(literal, int) and literal > 0 else rest


def _round_with(make: Callable[..., Any]) -> Translation:
    def translate(call: Call) -> Output:
        value = call.tensor(0)
        if value.get_element_type() not in (Type.f32, Type.f64, Type.f16):
            return cast(value, Type.i64)
        return ops.convert(make(value), Type.i64).output(0)

    return translate


def _truncate(value: Output) -> Output:
    return value  # Convert from float to integer truncates


def _to_float(call: Call) -> Output:
    return call.tensor(0, Type.f32)


def _negate(call: Call) -> Output:
    return ops.negative(call.tensor(0, _kind(call))).output(0)


def _power(call: Call) -> Output:
    """A negative exponent makes an integer base a float, as in Python."""
    exponent = call[1]
    kind = Type.f32 if isinstance(exponent, float | int) and exponent < 0 else _kind(call)
    return ops.power(call.tensor(0, kind), call.tensor(1, kind)).output(0)


def _choose(call: Call) -> Output:
    kind = Type.f32 if isinstance(call.result, float | torch.SymFloat) else Type.i64
    return ops.select(call.tensor(0, Type.boolean), call.tensor(1, kind), call.tensor(2, kind)).output(0)


def _not(call: Call) -> Output:
    return ops.logical_not(call.tensor(0, Type.boolean)).output(0)


def _logical(make: Callable[..., Any]) -> Translation:
    def translate(call: Call) -> Output:
        return make(call.tensor(0, Type.boolean), call.tensor(1, Type.boolean)).output(0)

    return translate


def _sum(call: Call) -> Output:
    kind = _kind(call)
    total = constant(0, kind)
    for item in call[0]:
        total = ops.add(total, cast(item, kind) if isinstance(item, Output) else constant(item, kind)).output(0)
    return total


def _scalar_tensor(call: Call) -> Output:
    return call.tensor("s", call.result_type)


TRANSLATIONS: dict[str, Translation] = {
    "<built-in function add>": _binary(ops.add),
    "<built-in function sub>": _binary(ops.subtract),
    "<built-in function mul>": _binary(ops.multiply),
    "<built-in function mod>": _modulo,
    "<built-in function floordiv>": _floordiv,
    "<built-in function truediv>": _truediv,
    "<built-in function pow>": _power,
    "<built-in function neg>": _negate,
    "<built-in function eq>": _binary(ops.equal),
    "<built-in function ne>": _binary(ops.not_equal),
    "<built-in function lt>": _binary(ops.less),
    "<built-in function le>": _binary(ops.less_equal),
    "<built-in function gt>": _binary(ops.greater),
    "<built-in function ge>": _binary(ops.greater_equal),
    "<built-in function and_>": _logical(ops.logical_and),
    "<built-in function or_>": _logical(ops.logical_or),
    "<built-in function ceil>": _round_with(ops.ceiling),
    "<built-in function floor>": _round_with(ops.floor),
    "<built-in function trunc>": _round_with(_truncate),
    "<built-in function round>": _round_with(lambda value: ops.round(value, "half_to_even")),
    "torch.sym_float": _to_float,
    "torch.sym_int": _round_with(_truncate),
    "torch._sym_sqrt": lambda call: ops.sqrt(call.tensor(0, Type.f32)).output(0),
    "torch.sym_max": _binary(ops.maximum),
    "torch.sym_min": _binary(ops.minimum),
    "torch.sym_not": _not,
    "torch.sym_ite": _choose,
    "torch.sym_sum": _sum,
    "aten.scalar_tensor.default": _scalar_tensor,
}
