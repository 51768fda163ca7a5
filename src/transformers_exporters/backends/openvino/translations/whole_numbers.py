"""Division that rounds, and its remainder."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, Translation
from ..division import quotient_floored, quotient_to_zero

_FLOATS = (Type.f32, Type.f64, Type.f16, Type.bf16)


def _operands(call: Call) -> tuple[Output, Output]:
    return call.tensor("self", call.result_type), call.tensor("other", call.result_type)


def _floor_divide(call: Call) -> Output:
    value, divisor = _operands(call)
    if call.result_type in _FLOATS:
        return ops.floor(ops.divide(value, divisor)).output(0)
    return quotient_floored(value, divisor)[0]


def _divide(call: Call) -> Output:
    value, divisor = _operands(call)
    if call["rounding_mode"] == "floor":
        return _floor_divide(call)
    if call["rounding_mode"] is None:
        return ops.divide(value, divisor).output(0)
    if call.result_type not in _FLOATS:
        return quotient_to_zero(value, divisor)[0]
    quotient = ops.divide(value, divisor)
    return ops.multiply(ops.sign(quotient), ops.floor(ops.abs(quotient))).output(0)


def _remainder(call: Call) -> Output:
    value, divisor = _operands(call)
    if call.result_type in _FLOATS:
        return ops.floor_mod(value, divisor).output(0)
    return quotient_floored(value, divisor)[1]


TRANSLATIONS: dict[str, Translation] = {
    "aten.floor_divide.default": _floor_divide,
    "aten.div.Tensor_mode": _divide,
    "aten.div.Scalar_mode": _divide,
    "aten.remainder.Tensor": _remainder,
    "aten.remainder.Scalar": _remainder,
}
