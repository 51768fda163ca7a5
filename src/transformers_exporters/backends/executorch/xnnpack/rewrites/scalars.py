"""Whole numbers in float arithmetic as floats.

An int scalar becomes an int64 constant and a cast in the edge dialect, and the cast is an operator that XNNPACK lacks.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

_aten = torch.ops.aten
_ARITHMETIC = dict.fromkeys(
    (
        _aten.add.Tensor,
        _aten.sub.Tensor,
        _aten.mul.Tensor,
        _aten.div.Tensor,
        _aten.rsub.Scalar,
        _aten.add.Scalar,
        _aten.mul.Scalar,
        _aten.div.Scalar,
        _aten.sub.Scalar,
    )
)


def apply(program: ExportedProgram) -> int:
    """Rewrite int scalars next to a float tensor; returns how many operators changed."""
    count = 0
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target not in _ARITHMETIC:
            continue
        tensor, scalar = node.args[0], node.args[1]
        if isinstance(tensor, Node) and type(scalar) is int and tensor.meta["val"].is_floating_point():
            node.args = (tensor, float(scalar), *node.args[2:])
            count += 1
    return count
