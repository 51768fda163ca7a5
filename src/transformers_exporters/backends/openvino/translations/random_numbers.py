"""Random numbers, drawn anew in every run. Two seeds of zero tell the engine to choose one itself."""

from __future__ import annotations

import math

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, Translation, cast, constant, numbers, shape_of


def _uniform(call: Call) -> Output:
    return cast(_drawn(call, numbers(call["size"])), call.result_type)


def _normal(call: Call) -> Output:
    """Normal numbers by the transform of Box and Muller: a length and an angle. The engine has uniform ones only."""
    sizes = numbers(call["size"])
    chance = ops.maximum(_drawn(call, sizes), constant(2.0**-24, Type.f32))  # no logarithm of 0
    length = ops.sqrt(ops.multiply(constant(-2.0, Type.f32), ops.log(chance)))
    angle = ops.multiply(constant(2 * math.pi, Type.f32), _drawn(call, sizes, second=True))
    return cast(ops.multiply(length, ops.cos(angle)).output(0), call.result_type)


def _dropout(call: Call) -> Output:
    """With the flag `train`, without which a dropout is no node by now: some elements are 0, the others grow."""
    value, kind = call["input"], call.result_type
    kept = ops.greater_equal(_drawn(call, shape_of(value)), constant(call["p"], Type.f32)).output(0)
    return ops.multiply(ops.multiply(value, cast(kept, kind)), constant(1 / max(1 - call["p"], 2.0**-24), kind)).output(
        0
    )


def _drawn(call: Call, sizes: Output, second: bool = False) -> Output:
    """Uniform float32 numbers in [0, 1).

    Each draw starts at a number of its own, of no weight: the engine takes two nodes with equal inputs for one
    (openvino 2026.4.1), and seeds that differ would give the same numbers in every process. `Abs` keeps the engine from taking
    a factor into the bounds, where it refuses 0 and numbers below it.
    """
    place = 2 * [*call.node.graph.nodes].index(call.node) + second
    start = constant(place * 2.0**-126, Type.f32)
    return ops.abs(ops.random_uniform(sizes, start, constant(1.0, Type.f32), "f32")).output(0)


TRANSLATIONS: dict[str, Translation] = {
    "aten.rand.default": _uniform,
    "aten.randn.default": _normal,
    "aten.dropout.default": _dropout,
}
