"""A dropout that is on, by random numbers and a product."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround


def _scaled(x: Tensor, p: float, train: bool) -> Tensor:
    kept = torch.rand(x.shape, dtype=torch.float32, device=x.device) >= p
    return x * kept.to(x.dtype) / max(1 - p, 2.0**-24)


def apply(program: ExportedProgram) -> int:
    """Write every dropout that is on in evaluation mode, too; returns how many."""
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=torch.ops.aten.dropout.default):
        if node.args[2]:
            substitute(node, inline(node, _scaled, node.args, {}))
            count += 1
    return count


WORKAROUND = Workaround(
    reason="ExecuTorch's dropout does not divide what it keeps by the chance of being kept: means come out too small. Seen "
    "where a model calls `F.dropout` without `training=`.",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_native_dropout.cpp.",
    targets=("aten.dropout.default",),
    apply=apply,
)
