"""Several entries picked along an axis that was just made.

OpenVINO 2026.4 drops an `Unsqueeze` together with the `Gather` along its axis, whatever the number of indices
(`EliminateUnsqueezeGather`, openvinotoolkit/openvino#3847): `x[:, None].repeat_interleave(4, 1)` comes out without the
axis, in silence. An axis of one has one entry, so picking several is a broadcast.
"""

from __future__ import annotations

from typing import Any

from openvino import Model, Output, Type
from openvino import opset15 as ops

from .call import constant


def broadcast_new_axes(model: Model) -> int:
    """Broadcast instead of a `Gather` of an index vector along an axis that an `Unsqueeze` made; returns how many."""
    count = 0
    for node in model.get_ops():
        if node.get_type_name() != "Gather":
            continue
        made, indices, axis = (node.input_value(i) for i in range(3))
        known = indices.get_partial_shape().rank
        if made.get_node().get_type_name() != "Unsqueeze" or known.is_dynamic or known.get_length() != 1:
            continue
        rank = made.get_partial_shape().rank
        places = [_number(value) for value in (axis, made.get_node().input_value(1))]
        if None in places or rank.is_dynamic or len({int(place) % rank.get_length() for place in places}) != 1:
            continue
        place = constant([int(places[0]) % rank.get_length()], Type.i64)
        sizes = ops.scatter_update(
            ops.shape_of(made, Type.i64), place, ops.shape_of(indices, Type.i64), constant(0, Type.i64)
        )
        spread = ops.broadcast(made, sizes, broadcast_spec="BIDIRECTIONAL")
        spread.set_friendly_name(node.get_friendly_name())
        node.output(0).replace(spread.output(0))
        count += 1
    return count


def _number(value: Output) -> Any:
    """The one number that a constant holds, or None."""
    held = value.get_node()
    data = held.get_data().flatten().tolist() if held.get_type_name() == "Constant" else []
    return data[0] if len(data) == 1 else None
