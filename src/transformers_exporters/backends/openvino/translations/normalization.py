"""Layer norm as `MVN`, computed in float32."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant

_HALF = (Type.f16, Type.bf16)


def _layer_norm(call: Call) -> Output:
    """Mean and variance over the last axes, in float32: squares of 16-bit values overflow beyond 255."""
    value: Output = call["input"]
    kind = value.get_element_type()
    axes = constant(list(range(-len(call["normalized_shape"]), 0)), Type.i64)
    wide = cast(value, Type.f32) if kind in _HALF else value
    made = ops.mvn(wide, axes, True, float(call["eps"]), "inside_sqrt").output(0)
    wide_kind = made.get_element_type()
    if call["weight"] is not None:
        made = ops.multiply(made, cast(call["weight"], wide_kind)).output(0)
    if call["bias"] is not None:
        made = ops.add(made, cast(call["bias"], wide_kind)).output(0)
    return cast(made, kind)


TRANSLATIONS = {"aten.layer_norm.default": _layer_norm}
