"""Tensors of several dtypes that are stacked: each is cast to the dtype of the result."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround
from ..inline import inline

_aten = torch.ops.aten


def cast_pieces(program: ExportedProgram) -> int:
    """Cast what is stacked where it is not of the result's dtype; returns how many stacks that were."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.find_nodes(op="call_function", target=_aten.stack.default):
            pieces: list[Node] = list(node.args[0])
            wanted = node.meta["val"].dtype
            if any(piece.meta["val"].dtype != wanted for piece in pieces):
                cast = [
                    piece if piece.meta["val"].dtype == wanted else inline(node, _aten.to.dtype, (piece, wanted), {})
                    for piece in pieces
                ]
                node.args = (cast, *node.args[1:])
                changed += 1
    return changed


WORKAROUND = Workaround(
    reason="torch.onnx gives the pieces of a `cat` one dtype and forgets those of a `stack`: ONNX Runtime refuses the model.",
    upstream="none: no report found; torch 2.13, torch/onnx/_internal/fx/passes/type_promotion.py has no rule for stack.",
    targets=("aten.stack.default",),
    apply=cast_pieces,
)
