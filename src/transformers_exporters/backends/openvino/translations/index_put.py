"""`index_put` as a select (a mask and a value) or as `ScatterNDUpdate`."""

from __future__ import annotations

import torch
from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of
from ..places import axes_first, places


def _index_put(call: Call) -> Output:
    """`self[indices] = values`, or `+=` where the op accumulates."""
    node_indices = list(call["indices"])
    used = [n for n, index in enumerate(node_indices) if index is not None]
    traced = {n: call.traced_item("indices", n) for n in used}
    if len(used) == 1 and traced[used[0]].dtype == torch.bool:
        return _masked(call, used[0], node_indices[used[0]], traced[used[0]].dim())
    if any(traced[n].dtype == torch.bool for n in used):
        raise NotImplementedError("index_put with a mask beside other indices")
    return _scattered(call, used, [node_indices[n] for n in used])


def _masked(call: Call, first: int, mask: Output, depth: int) -> Output:
    data, values = call["self"], cast(call["values"], call["self"].get_element_type())
    trailing = call.traced("self").dim() - first - depth
    if call.traced("values").dim() <= trailing:
        axes = list(range(depth, depth + trailing))
        wide = ops.unsqueeze(mask, constant(axes, Type.i64)).output(0) if axes else mask
        new = ops.add(data, values).output(0) if call["accumulate"] else values
        return ops.select(wide, new, data).output(0)
    if first:
        raise NotImplementedError("index_put of many values by a mask that is not the first index")
    where = ops.transpose(ops.non_zero(mask, "i64"), constant([1, 0], Type.i64)).output(0)
    count = ops.gather(shape_of(where), constant([0], Type.i64), constant(0, Type.i64)).output(0)
    return _scatter(call, data, where, values, count, list(range(depth)))


def _scattered(call: Call, used: list[int], indices: list[Output]) -> Output:
    """Integer indices: the indexed axes go to the front, all indices take one shape."""
    data = call["self"]
    rank = call.traced("self").dim()
    moved, order = axes_first(data, used, rank)
    where, shape = places(data, used, indices)
    values = cast(call["values"], data.get_element_type())
    adjacent = used == list(range(used[0], used[-1] + 1))
    depth = max(call.traced_item("indices", n).dim() for n in used)
    if adjacent and used[0] and call.traced("values").dim() > depth + rank - used[-1] - 1:
        # The value's axes stand where the indexed axes stood: bring those of the indices to the front.
        before = call.traced("values").dim() - depth - (rank - used[-1] - 1)
        axes = [*range(before, before + depth), *range(before), *range(before + depth, call.traced("values").dim())]
        if before < used[0]:
            raise NotImplementedError("index_put of a value with fewer axes than stand before the indices")
        values = ops.transpose(values, constant(axes, Type.i64)).output(0)
    updated = _scatter(call, moved, where, values, shape, used)
    if order == list(range(rank)):
        return updated
    return ops.transpose(updated, constant([order.index(i) for i in range(rank)], Type.i64)).output(0)


def _scatter(call: Call, data: Output, where: Output, values: Output, shape: Output, used: list[int]) -> Output:
    """Write `values`, broadcast to `shape` and the axes that are not indexed, at the rows `where`."""
    rest = list(range(len(used), call.traced("self").dim()))
    tail = ops.gather(shape_of(data), constant(rest, Type.i64), constant(0, Type.i64)) if rest else None
    target = ops.concat([shape, tail], 0).output(0) if tail is not None else shape
    updates = ops.broadcast(values, target, broadcast_spec="BIDIRECTIONAL").output(0)
    if call["accumulate"]:
        return ops.scatter_nd_update(data, where, updates, "sum").output(0)
    return ops.scatter_nd_update(data, where, updates).output(0)


TRANSLATIONS = {
    "aten.index_put.default": _index_put,
    "aten._unsafe_index_put.default": _index_put,
    "aten._index_put_impl.default": _index_put,
}
