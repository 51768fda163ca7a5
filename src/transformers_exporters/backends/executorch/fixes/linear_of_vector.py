"""A linear layer with a vector in the place of its weight, as a product of matrices."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround

_LINEAR = torch.ops.aten.linear.default


def _by_matrix(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = torch.nn.functional.linear(x, weight.unsqueeze(0)).squeeze(-1)
    return result if bias is None else result + bias


def apply(program: ExportedProgram) -> int:
    """Give every weight of one axis a second one; returns how many."""
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_LINEAR):
        if node.args[1].meta["val"].dim() == 1:
            substitute(node, inline(node, _by_matrix, node.args, {}))
            count += 1
    return count


WORKAROUND = Workaround(
    reason="ExecuTorch's linear wants a result of as many axes as its input; the mean of a distribution over bins (D-FINE, Deimv2) "
    "has one less.",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/util/matmul_ops_util.cpp.",
    targets=("aten.linear.default",),
    apply=apply,
)
