"""`nonzero` as one of a flat tensor, whose result is read as a line: its traced strides are column by column."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround


def _by_line(x: Tensor) -> Tensor:
    """Int64 [count, axes]: the places in the flattened tensor, taken apart into one index an axis."""
    rest = torch.nonzero(x.flatten()).flatten()
    indices = []
    for size in reversed(x.shape):
        indices.append(torch.remainder(rest, torch.arange(size)[-1] + 1))
        rest = torch.div(rest, torch.arange(size)[-1] + 1, rounding_mode="floor")
    return torch.stack(indices[::-1], 1)


def apply(program: ExportedProgram) -> int:
    nodes = program.graph.find_nodes(op="call_function", target=torch.ops.aten.nonzero.default)
    for node in nodes:
        substitute(node, inline(node, _by_line, node.args, {}))
    return len(nodes)


WORKAROUND = Workaround(
    reason="torch traces `nonzero` with column-major strides and ExecuTorch's kernel fills it row by row: with several axes "
    "every index lands in another place, and with one the kernels that read it refuse its strides (error 0x12).",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_nonzero.cpp writes without regard to the dim order.",
    targets=("aten.nonzero.default",),
    apply=apply,
)
