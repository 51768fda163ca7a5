"""`gather` with an index that is shorter than the data along the other axes, which torch allows."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ..call import Call, cast, constant, shape_of


def _gather(call: Call) -> Output:
    """`GatherElements` over the part of the data that the index reaches: OpenVINO wants equal sizes beside the axis."""
    data, index = call["self"], cast(call["index"], Type.i64)
    values, places = call.traced("self"), call.traced("index")
    rank = values.dim()
    if rank == 0 or places.dim() == 0:  # one value, which is all that the index can name
        return data if places.dim() == rank else ops.reshape(data, shape_of(index), False).output(0)
    axis = int(call["dim"]) % rank
    zero, one = constant(0, Type.i64), constant(1, Type.i64)
    for d in range(rank):
        if d == axis or statically_known_true(values.shape[d] == places.shape[d]):
            continue
        # Not `Slice`: OpenVINO takes one in front of `GatherElements` for superfluous and drops it (2026.4.1).
        size = ops.gather(shape_of(index), constant(d, Type.i64), zero)
        data = ops.gather(data, ops.range(zero, size, one, Type.i64), constant(d, Type.i64)).output(0)
    return ops.gather_elements(data, index, axis).output(0)


TRANSLATIONS = {"aten.gather.default": _gather}
