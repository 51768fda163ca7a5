"""`to` and its relatives: a cast, or nothing where only the device or the layout is named."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant


def _to(call: Call) -> Output:
    """Cast the first argument to the dtype that was traced. A float becomes an integer by truncation, as in torch."""
    value: Output = call[next(iter(call.names))]
    wanted = call.result_type
    if wanted == Type.boolean and value.get_element_type() != Type.boolean:
        # Convert keeps the low bits: 0.5 would become False.
        return ops.not_equal(value, constant(0, value.get_element_type())).output(0)
    return cast(value, wanted)


TRANSLATIONS = {
    f"aten.{name}": _to
    for name in (
        "to.dtype",
        "to.dtype_layout",
        "to.device",
        "to.other",
        "to.prim_Device",
        "type_as.default",
        "_to_copy.default",
        "lift_fresh.default",
    )
}
