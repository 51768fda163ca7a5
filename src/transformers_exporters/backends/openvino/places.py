"""Where tensors are read or written: several index tensors as coordinates, and rows that are replaced."""

from __future__ import annotations

from collections.abc import Sequence

import torch
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


def with_rows(data: Output, axis: int, rows: Output, values: Output, traced: torch.Tensor) -> Output:
    """`data` with these rows along an axis replaced.

    OpenVINO 2026.4 folds a `ScatterUpdate` over constants wrongly where two axes or more follow and the last has one place
    (the mask of shifted windows, [1, height, width, 1]). Such last axes are left out.

    Args:
        data: What is written to.
        axis: The axis, from the front.
        rows: Places along it.
        values: What they become.
        traced: `data` as it was traced.
    """
    last = traced.dim()
    while last > axis + 1 and isinstance(traced.shape[last - 1], int) and traced.shape[last - 1] == 1:
        last -= 1
    if last == traced.dim():
        return ops.scatter_update(data, rows, values, constant(axis, Type.i64)).output(0)
    ones = constant(list(range(last, traced.dim())), Type.i64)
    data, values = (ops.squeeze(value, ones).output(0) for value in (data, values))
    return ops.unsqueeze(ops.scatter_update(data, rows, values, constant(axis, Type.i64)), ones).output(0)


def _zeros(shape: Output) -> Output:
    return ops.broadcast(constant(0, Type.i64), shape).output(0)
