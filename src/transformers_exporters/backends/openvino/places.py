"""Several index tensors as the coordinates that `GatherND` and `ScatterNDUpdate` take."""

from __future__ import annotations

from collections.abc import Sequence

from openvino import Output, Type
from openvino import opset15 as ops

from .call import cast, constant, shape_of


def axes_first(data: Output, used: Sequence[int], rank: int) -> tuple[Output, list[int]]:
    """`data` with the axes `used` in front, and the order that its axes have now."""
    order = [*used, *(axis for axis in range(rank) if axis not in used)]
    return (data if order == list(range(rank)) else ops.transpose(data, constant(order, Type.i64)).output(0)), order


def places(data: Output, used: Sequence[int], indices: Sequence[Output]) -> tuple[Output, Output]:
    """Coordinates [..., len(used)], none below 0, and the shape that all indices have after broadcasting.

    Args:
        data: What is indexed.
        used: The indexed axes.
        indices: An index of whole numbers for each.
    """
    sizes = shape_of(data)
    columns = []
    for axis, index in zip(used, indices, strict=True):
        size = ops.gather(sizes, constant(axis, Type.i64), constant(0, Type.i64)).output(0)
        wide = cast(index, Type.i64)
        below = ops.less(wide, constant(0, Type.i64))
        columns.append(ops.select(below, ops.add(wide, size), wide).output(0))
    shape = shape_of(columns[0])
    for column in columns[1:]:
        total = ops.add(_zeros(shape), _zeros(shape_of(column)))
        shape = shape_of(total.output(0))
    columns = [ops.broadcast(column, shape, broadcast_spec="BIDIRECTIONAL").output(0) for column in columns]
    return ops.concat([ops.unsqueeze(c, constant(-1, Type.i64)).output(0) for c in columns], -1).output(0), shape


def _zeros(shape: Output) -> Output:
    return ops.broadcast(constant(0, Type.i64), shape).output(0)
