"""`nonzero` as one of a flat tensor, whose result is read as a line: its traced strides are column by column."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround

_aten = torch.ops.aten


def _indices(x: Tensor) -> list[Tensor]:
    """An int64 [count] for each axis: the places in the flattened tensor, taken apart."""
    rest = torch.nonzero(x.flatten()).flatten()
    indices = []
    for size in reversed(x.shape):
        indices.append(torch.remainder(rest, torch.arange(size)[-1] + 1))
        rest = torch.div(rest, torch.arange(size)[-1] + 1, rounding_mode="floor")
    return indices[::-1]


def _rows(x: Tensor) -> Tensor:
    """Int64 [count, axes]."""
    return torch.stack(_indices(x), 1)


#: `where` with a condition alone is `nonzero`, too, and becomes one only when ops are taken apart.
_FORMS = {
    _aten.nonzero.default: _rows,
    _aten.argwhere.default: _rows,
    _aten.nonzero_numpy.default: _indices,
    _aten.where.default: _indices,
}


def apply(program: ExportedProgram) -> int:
    """Write every form of `nonzero` that the graph has; returns how many."""
    count = 0
    for op, form in _FORMS.items():
        for node in program.graph.find_nodes(op="call_function", target=op):
            substitute(node, inline(node, form, node.args, {}))
            count += 1
    return count


WORKAROUND = Workaround(
    reason="torch traces `nonzero` with column-major strides and ExecuTorch's kernel fills it row by row: with several axes "
    "every index lands in another place, and with one the kernels that read it refuse its strides (error 0x12).",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_nonzero.cpp writes without regard to the dim order.",
    targets=("aten.nonzero.default",),
    apply=apply,
)
