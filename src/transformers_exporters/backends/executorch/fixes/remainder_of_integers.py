"""The remainder of integers and of sizes, by their quotient."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ....repair.inline import inline, substitute
from ....workarounds import Workaround
from ..insertion import Inserter, replace

_REMAINDERS = (torch.ops.aten.remainder.Tensor, torch.ops.aten.remainder.Scalar)


def _by_quotient(x: Tensor, divisor: Any) -> Tensor:
    return x - torch.floor_divide(x, divisor) * divisor


def apply(program: ExportedProgram) -> int:
    """Write every remainder of integers with the divisor's sign; returns how many."""
    count = _of_sizes(program)
    for op in _REMAINDERS:
        for node in program.graph.find_nodes(op="call_function", target=op):
            if not node.meta["val"].is_floating_point():
                substitute(node, inline(node, _by_quotient, node.args, {}))
                count += 1
    return count


def _of_sizes(program: ExportedProgram) -> int:
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=operator.mod):
        number, divisor = node.args
        value = number.meta["val"] if isinstance(number, Node) else number
        if not statically_known_true(value >= 0):
            insert = Inserter(node)
            cut = insert.call(operator.mul, insert.call(operator.floordiv, number, divisor), divisor)
            replace(node, insert.call(operator.sub, number, cut))
            count += 1
    return count


WORKAROUND = Workaround(
    reason="ExecuTorch's remainder of integers has the sign of the dividend, as in C: -1 % 3 is -1. That of sizes too.",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_remainder.cpp and "
    "kernels/prim_ops/register_prim_ops.cpp.",
    targets=("aten.remainder.Tensor", "aten.remainder.Scalar", "_operator.mod"),
    apply=apply,
)
