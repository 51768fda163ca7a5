"""A mask beside other indices, or behind an axis that is not indexed: the positions where it holds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround
from ..inline import inline, substitute

_aten = torch.ops.aten
_PUTS = (_aten.index_put.default, _aten.index_put_.default)


def write_positions(program: ExportedProgram) -> int:
    """Replace masks that are not the only and first index; returns how many nodes were rewritten."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        nodes = [n for n in module.graph.nodes if n.target is _aten.index.Tensor or n.target in _PUTS]
        # Of each mask once and everywhere: torch gives a second count of a mask the symbol of the first, and no pass that
        # runs the graph again may bind a symbol twice.
        masks = {index for n in nodes if _is_among(n.args[1]) for index in n.args[1] if _is_mask(index)}
        known: dict[Node, list[Node]] = {}
        for node in nodes:
            if masks.isdisjoint(node.args[1]):
                continue
            changed += 1
            places = [place for index in node.args[1] for place in _places(node, index, known)]
            if node.target is _aten.index.Tensor:
                substitute(node, inline(node, _aten.index.Tensor, (node.args[0], places), {}))
            else:
                node.args = (node.args[0], places, *node.args[2:])
    return changed


def _is_among(indices: Sequence[Node | None]) -> bool:
    given = [index is not None for index in indices]
    masks = [_is_mask(index) for index in indices]
    return any(masks) and not (masks[0] and sum(given) == 1)


def _is_mask(index: Node | None) -> bool:
    return index is not None and index.meta["val"].dtype == torch.bool


def _places(node: Node, index: Node | None, known: dict[Node, list[Node]]) -> Sequence[Node | None]:
    """A mask of n axes as n vectors of whole numbers; another index as it is."""
    if index is None or not _is_mask(index):
        return [index]
    if index not in known:
        known[index] = inline(node, _coordinates, (index,), {})
    return known[index]


def _coordinates(mask: Tensor) -> list[Tensor]:
    where = mask.nonzero()
    return [where[:, axis] for axis in range(mask.dim())]


WORKAROUND = Workaround(
    reason="ONNX's converter and OpenVINO take a mask as an index only where it is the first and the only one (the positions of "
    "Qwen3-Omni's text are written with `position_ids[..., i, mask] = ...`).",
    upstream="none: onnxscript's aten_index_put says that it does not support it",
    targets=("aten.index.Tensor", "aten.index_put.default"),
    apply=write_positions,
)
