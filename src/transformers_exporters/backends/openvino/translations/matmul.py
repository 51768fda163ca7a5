"""`matmul` and `einsum` as single nodes: torch's decompositions expand, flatten and compare symbolic sizes."""

from __future__ import annotations

from openvino import Output
from openvino import opset15 as ops

from ..call import Call


def _matmul(call: Call) -> Output:
    """numpy's rules, which are torch's and OpenVINO's: a vector is a row on the left and a column on the right."""
    names = list(call.names)
    return ops.matmul(call[names[0]], call[names[1]], False, False).output(0)


def _einsum(call: Call) -> Output:
    """The equation as it is; spaces are torch's liberty."""
    return ops.einsum(call["tensors"], call["equation"].replace(" ", "")).output(0)


TRANSLATIONS = {"aten.matmul.default": _matmul, "aten.einsum.default": _einsum}
