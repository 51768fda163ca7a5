"""`pad` in its modes, with any mixture of constant, symbolic and negative widths."""

from __future__ import annotations

from typing import Any

from openvino import Output, Type
from openvino import opset15 as ops

from ....trace.dims import may_be_negative
from ..call import Call, cast, constant, numbers, shape_of

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


def _padded(call: Call, mode: str, fill: Any) -> Output:
    """torch lists (before, after) from the last axis backwards; OpenVINO takes all befores and all afters."""
    data = call["self"]
    pad = list(call["pad"])
    free = call.traced("self").dim() - len(pad) // 2
    before = [0] * free + pad[0::2][::-1]
    after = [0] * free + pad[1::2][::-1]
    kind = data.get_element_type()
    # Pad has no kernel for booleans.
    carrier = Type.u8 if kind == Type.boolean else kind
    value = None
    if mode == "constant":
        value = cast(fill, carrier) if isinstance(fill, Output) else constant(fill or 0, carrier)
    data = cast(data, carrier)
    amounts = [call.traced_item("pad", i) for i in range(len(pad))]
    if mode == "constant" and any(not isinstance(each, int) and may_be_negative(each) for each in amounts):
        data, before, after = _cropped(data, numbers(before), numbers(after))
    else:
        before, after = numbers(before), numbers(after)
    return cast(ops.pad(data, before, after, mode, value).output(0), kind)


def _cropped(data: Output, before: Output, after: Output) -> tuple[Output, Output, Output]:
    """The tensor without what negative amounts cut off, and what is left to pad.

    OpenVINO 2026.4 computes with negative amounts, and takes the result of open ones for as long as the tensor at least: it
    then refuses a shorter one (VITS: relative positions of fewer tokens than were traced).
    """
    nothing = constant([0], Type.i64)
    start = ops.maximum(ops.negative(before), nothing)
    end = ops.add(shape_of(data), ops.minimum(after, nothing))
    steps = ops.broadcast(constant([1], Type.i64), shape_of(before))
    data = ops.slice(data, start, end, steps).output(0)
    return data, ops.maximum(before, nothing).output(0), ops.maximum(after, nothing).output(0)


def _pad(call: Call) -> Output:
    if call["mode"] not in _MODES:
        raise NotImplementedError(f"pad with mode {call['mode']!r}")
    return _padded(call, _MODES[call["mode"]], call["value"])


def _constant_pad(call: Call) -> Output:
    return _padded(call, "constant", call["value"])


TRANSLATIONS = {"aten.pad.default": _pad, "aten.constant_pad_nd.default": _constant_pad}
