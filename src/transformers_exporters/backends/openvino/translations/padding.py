"""`pad` in its modes, with any mixture of constant, symbolic and negative widths."""

from __future__ import annotations

from typing import Any

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, numbers

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
    made = ops.pad(cast(data, carrier), numbers(before), numbers(after), mode, value).output(0)
    return cast(made, kind)


def _pad(call: Call) -> Output:
    if call["mode"] not in _MODES:
        raise NotImplementedError(f"pad with mode {call['mode']!r}")
    return _padded(call, _MODES[call["mode"]], call["value"])


def _constant_pad(call: Call) -> Output:
    return _padded(call, "constant", call["value"])


TRANSLATIONS = {"aten.pad.default": _pad, "aten.constant_pad_nd.default": _constant_pad}
