"""`cat`: operands cast to the result's dtype, and torch's legacy exception for empty vectors."""

from __future__ import annotations

from openvino import Output
from openvino import opset15 as ops

from ..call import Call, cast


def _cat(call: Call) -> Output:
    """A vector of size 0 may be joined to a tensor of any rank and adds nothing: an empty cache is one."""
    traced = [call.traced_item("tensors", i) for i in range(len(call["tensors"]))]
    rank = call.result.dim()
    parts = [
        cast(value, call.result_type)
        for value, known in zip(call["tensors"], traced, strict=True)
        if known.dim() == rank and not (rank > 1 and list(known.shape) == [0])
    ]
    return parts[0] if len(parts) == 1 else ops.concat(parts, int(call["dim"]) % rank).output(0)


TRANSLATIONS = {"aten.cat.default": _cat}
