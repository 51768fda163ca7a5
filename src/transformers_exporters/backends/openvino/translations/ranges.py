"""`arange` in fractions, whose first number or step may be written as a whole one."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast


def _arange(call: Call) -> Output:
    """The frontend (2026.4.1) takes the type of the first number for all: `arange(0, 1, 1 / n)` was all zero."""
    kind = Type.f32 if call.result.dtype.is_floating_point else Type.i64
    made = ops.range(*(call.tensor(name, kind) for name in ("start", "end", "step")), kind)
    return cast(made.output(0), call.result_type)


TRANSLATIONS = {"aten.arange.start_step": _arange}
