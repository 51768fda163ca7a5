"""`select_scatter`: a tensor with one slab along an axis replaced."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of
from ..places import with_rows


def _select_scatter(call: Call) -> Output:
    """`ScatterUpdate`. In loops over rows the frontend leaves an operator of its own (`GatherAssign`) that no plugin knows."""
    data = call["self"]
    axis = int(call["dim"]) % call.traced("self").dim()
    index = call.tensor("index", Type.i64)
    size = ops.gather(shape_of(data), constant(axis, Type.i64), constant(0, Type.i64))
    place = ops.select(ops.less(index, constant(0, Type.i64)), ops.add(index, size), index)
    slab = ops.unsqueeze(cast(call["src"], data.get_element_type()), constant(axis, Type.i64)).output(0)
    row = ops.reshape(place, constant([1], Type.i64), False).output(0)
    return with_rows(data, axis, row, slab, call.traced("self"))


TRANSLATIONS = {"aten.select_scatter.default": _select_scatter}
