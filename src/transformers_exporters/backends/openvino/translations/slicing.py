"""`slice` and `slice_scatter`: every so-many-th part along an axis, taken or replaced."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, number, shape_of
from ..places import with_rows

_END = 2**63 - 1


def _slice(call: Call) -> Output:
    return _sliced(call, call["self"], int(call["dim"]) % call.traced("self").dim())


def _sliced(call: Call, data: Output, axis: int) -> Output:
    """The slice that a call describes, of any tensor.

    Steps over an axis are a slice of their own, which ends before the last number there is. OpenVINO 2026.4 takes the result
    of one that goes to the very end, of an axis with a lower bound of one, for as long as the axis: the shape of `x[:, ::2]`
    is that of `x` then.
    """
    axes, one = constant([axis], Type.i64), constant([1], Type.i64)
    start = call["start"] if call["start"] is not None else 0
    end = call["end"] if call["end"] is not None else _END
    if not (isinstance(start, int) and start == 0 and isinstance(end, int) and end == _END) or call["step"] == 1:
        data = ops.slice(data, number(start), number(end), one, axes).output(0)
    if call["step"] != 1:
        data = ops.slice(data, number(0), number(_END - 1), number(call["step"]), axes).output(0)
    return data


def _slice_scatter(call: Call) -> Output:
    """`ScatterUpdate` at those of all places that the slice holds."""
    data = call["self"]
    axis = int(call["dim"]) % call.traced("self").dim()
    size = ops.gather(shape_of(data), constant(axis, Type.i64), constant(0, Type.i64))
    places = ops.range(constant(0, Type.i64), size, constant(1, Type.i64), Type.i64).output(0)
    values = cast(call["src"], data.get_element_type())
    return with_rows(data, axis, _sliced(call, places, 0), values, call.traced("self"))


TRANSLATIONS = {"aten.slice.Tensor": _slice, "aten.slice_scatter.default": _slice_scatter}
