"""Ops that change nothing in an exported graph: layout, device, autograd and evaluation-mode dropout."""

from __future__ import annotations

from openvino import Output

from ..call import Call


def _first(call: Call) -> Output:
    value: Output = call[next(iter(call.names))]
    return value


def _dropout(call: Call) -> Output:
    if call["train"]:
        raise NotImplementedError("dropout in training mode")
    value: Output = call["input"]
    return value


TRANSLATIONS = {
    "aten.contiguous.default": _first,
    "aten.detach.default": _first,
    "aten.detach_.default": _first,
    "aten.alias.default": _first,
    "aten.lift_fresh_copy.default": _first,
    "aten.positive.default": _first,
    "aten.dropout.default": _dropout,
    "aten.dropout_.default": _dropout,
    "aten.feature_dropout.default": _dropout,
    "aten.alpha_dropout.default": _dropout,
}
