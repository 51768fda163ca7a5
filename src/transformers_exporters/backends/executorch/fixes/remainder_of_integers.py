"""The remainder of integers, by their quotient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround

_REMAINDERS = (torch.ops.aten.remainder.Tensor, torch.ops.aten.remainder.Scalar)


def _by_quotient(x: Tensor, divisor: Any) -> Tensor:
    return x - torch.floor_divide(x, divisor) * divisor


def apply(program: ExportedProgram) -> int:
    """Write every remainder of integers with the divisor's sign; returns how many."""
    count = 0
    for op in _REMAINDERS:
        for node in program.graph.find_nodes(op="call_function", target=op):
            if not node.meta["val"].is_floating_point():
                substitute(node, inline(node, _by_quotient, node.args, {}))
                count += 1
    return count


WORKAROUND = Workaround(
    reason="ExecuTorch's remainder of integers has the sign of the dividend, as in C: -1 % 3 is -1.",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_remainder.cpp.",
    targets=("aten.remainder.Tensor", "aten.remainder.Scalar"),
    apply=apply,
)
