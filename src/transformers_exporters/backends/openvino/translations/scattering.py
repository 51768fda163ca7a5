"""`select_scatter`: a tensor with one slab along an axis replaced."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of


def _select_scatter(call: Call) -> Output:
    """`ScatterUpdate`. In loops over rows the frontend leaves an operator of its own (`GatherAssign`) that no plugin knows."""
    data = call["self"]
    axis = constant(int(call["dim"]) % call.traced("self").dim(), Type.i64)
    index = call.tensor("index", Type.i64)
    size = ops.gather(shape_of(data), axis, constant(0, Type.i64))
    place = ops.select(ops.less(index, constant(0, Type.i64)), ops.add(index, size), index)
    slab = ops.unsqueeze(cast(call["src"], data.get_element_type()), axis)
    return ops.scatter_update(data, ops.reshape(place, constant([1], Type.i64), False), slab, axis).output(0)


TRANSLATIONS = {"aten.select_scatter.default": _select_scatter}
