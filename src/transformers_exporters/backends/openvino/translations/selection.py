"""`where`, the two-operand `min` and `max`, and reductions into places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, Translation, cast, constant

_REDUCTIONS = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "amin": "min"}


def _where(call: Call) -> Output:
    kind = call.result_type
    condition = call.tensor("condition", Type.boolean)
    if kind == Type.boolean:
        # The CPU plugin keeps booleans in bytes, and a `Select` of two inputs refuses that the one it compares is one.
        first = ops.logical_and(condition, call.tensor("self", kind))
        second = ops.logical_and(ops.logical_not(condition), call.tensor("other", kind))
        return ops.logical_or(first, second).output(0)
    return ops.select(condition, call.tensor("self", kind), call.tensor("other", kind)).output(0)


def _pairwise(make: Callable[..., Any]) -> Translation:
    def translate(call: Call) -> Output:
        kind = call.result_type
        return make(call.tensor("self", kind), call.tensor("other", kind)).output(0)

    return translate


def _scatter_reduce(call: Call) -> Output:
    kind = call["self"].get_element_type()
    axis = call["dim"] % max(call.traced("self").dim(), 1)
    return ops.scatter_elements_update(
        call["self"],
        cast(call["index"], Type.i64),
        cast(call["src"], kind),
        constant(axis, Type.i64),
        _REDUCTIONS[call["reduce"]],
        bool(call["include_self"]),
    ).output(0)


TRANSLATIONS: dict[str, Translation] = {
    "aten.where.self": _where,
    "aten.where.Scalar": _where,
    "aten.where.ScalarSelf": _where,
    "aten.where.ScalarOther": _where,
    "aten.min.other": _pairwise(ops.minimum),
    "aten.max.other": _pairwise(ops.maximum),
    "aten.minimum.default": _pairwise(ops.minimum),
    "aten.maximum.default": _pairwise(ops.maximum),
    "aten.scatter_reduce.two": _scatter_reduce,
}
