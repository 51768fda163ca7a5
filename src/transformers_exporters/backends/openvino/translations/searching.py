"""`topk` of a number of places that is data."""

from __future__ import annotations

from collections.abc import Sequence

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, Translation, constant, number


def _topk(call: Call) -> Sequence[Output]:
    """The engine refuses to look for nothing (2026.4): one place is looked for then, and cut off."""
    places = number(call["k"])
    axis = call["dim"] % max(call.traced("self").dim(), 1)
    found = ops.topk(
        call["self"],
        ops.squeeze(ops.maximum(places, constant([1], Type.i64)), constant([0], Type.i64)),
        axis,
        "max" if call["largest"] else "min",
        "value" if call["sorted"] else "none",
        index_element_type=Type.i64,
    )
    if not isinstance(call["k"], Output):
        return found.outputs()
    first, step, along = (constant([value], Type.i64) for value in (0, 1, axis))
    return [ops.slice(output, first, places, step, along).output(0) for output in found.outputs()]


TRANSLATIONS: dict[str, Translation] = {"aten.topk.default": _topk}
