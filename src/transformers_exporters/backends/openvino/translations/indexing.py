"""`index`: the frontend's own rule takes places counted from the end, of several indices, for others (2026.4.1)."""

from __future__ import annotations

import torch
from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant
from ..places import axes_first, places


def _index(call: Call) -> Output:
    """`self[indices]`: a mask in front, one index of whole numbers, or several, whose axes stand where theirs stood."""
    data, rank = call["self"], call.traced("self").dim()
    used = [axis for axis, index in enumerate(call["indices"]) if index is not None]
    indices = [call["indices"][axis] for axis in used]
    if any(call.traced_item("indices", axis).dtype in (torch.bool, torch.uint8) for axis in used):
        if used != [0]:
            raise NotImplementedError("a mask among other indices")
        where = ops.non_zero(cast(indices[0], Type.boolean), "i64")
        return ops.gather_nd(data, ops.transpose(where, constant([1, 0], Type.i64))).output(0)
    if len(used) == 1:
        return ops.gather(data, cast(indices[0], Type.i64), constant(used[0], Type.i64)).output(0)
    picked = ops.gather_nd(axes_first(data, used, rank)[0], places(data, used, indices)[0]).output(0)
    before = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    if not before:
        return picked
    depth = max(call.traced_item("indices", axis).dim() for axis in used)
    axes = [*range(depth, depth + before), *range(depth), *range(depth + before, depth + rank - len(used))]
    return ops.transpose(picked, constant(axes, Type.i64)).output(0)


TRANSLATIONS = {"aten.index.Tensor": _index, "aten._unsafe_index.Tensor": _index}
