"""A number where an op takes a tensor first is a tensor of no axes."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from ...workarounds import Workaround
from ..inline import inline

_aten = torch.ops.aten


def take_tensors(program: ExportedProgram) -> int:
    """`floor_divide(1.0, x)` → `floor_divide(scalar_tensor(1.0), x)`, in the dtype of the result."""
    changed = 0
    for node in program.graph.nodes:
        if not _takes_tensor(node.target) or not node.args or not isinstance(node.args[0], int | float):
            continue
        made = inline(node, _aten.scalar_tensor.default, (node.args[0],), {"dtype": node.meta["val"].dtype})
        node.args = (made, *node.args[1:])
        changed += 1
    return changed


def _takes_tensor(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.arguments:
        return False
    return str(target._schema.arguments[0].type) == "Tensor"


WORKAROUND = Workaround(
    reason="`1.0 // x` is traced with the number in place of a tensor; onnxscript's translation asks it for its dtype (I-BERT).",
    upstream="none: no report found; onnxscript 0.7.2",
    targets=("aten.floor_divide.default",),
    apply=take_tensors,
)
