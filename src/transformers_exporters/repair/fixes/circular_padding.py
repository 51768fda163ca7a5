"""Circular padding is the end of an axis, the axis, and its start, joined."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule

from ...workarounds import Workaround
from ..inline import inline, substitute

_aten = torch.ops.aten
_PADS = frozenset({_aten.pad.default, _aten._pad_circular.default})


def join_ends(program: ExportedProgram) -> int:
    """Write every circular padding as slices and `cat`; returns how many there were."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in list(module.graph.nodes):
            if node.target in _PADS and (node.target is not _aten.pad.default or "circular" in node.args):
                substitute(node, inline(node, _wrapped, node.args[:2], {}))
                changed += 1
    return changed


def _wrapped(x: Tensor, amounts: list[int]) -> Tensor:
    """x padded by `amounts`, from the last axis on, (before, after) each; below 0, what is cut."""
    for n, (before, after) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        axis = x.dim() - 1 - n
        size = x.shape[axis]
        pieces = [x.narrow(axis, max(-before, 0), size - max(-before, 0) - max(-after, 0))]
        if before > 0:
            pieces.insert(0, x.narrow(axis, size - before - max(-after, 0), before))
        if after > 0:
            pieces.append(x.narrow(axis, max(-before, 0), after))
        x = torch.cat(pieces, axis) if len(pieces) > 1 else pieces[0]
    return x


WORKAROUND = Workaround(
    reason="OpenVINO has no circular padding, and torch's decomposition writes into slices, which fixes every axis on ExecuTorch "
    "(convolutions with `padding_mode='circular'`).",
    upstream="none: no report found; openvino 2026.4.1, torch 2.13",
    targets=("aten.pad.default",),
    apply=join_ends,
)
