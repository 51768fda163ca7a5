"""`softmax` and `log_softmax` along an axis, in the dtype that was asked for."""

from __future__ import annotations

from openvino import Output
from openvino import opset15 as ops

from ..call import Call, cast


def _softmax(call: Call) -> Output:
    return ops.softmax(cast(call["self"], call.result_type), call["dim"]).output(0)


def _log_softmax(call: Call) -> Output:
    return ops.log_softmax(cast(call["self"], call.result_type), call["dim"]).output(0)


TRANSLATIONS = {"aten.softmax.int": _softmax, "aten.log_softmax.int": _log_softmax}
