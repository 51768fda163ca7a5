"""A mask beside other indices, or behind an axis that is not indexed: the positions where it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        for node in list(module.graph.nodes):
            if node.target is not _aten.index.Tensor and node.target not in _PUTS:
                continue
            if not _is_among(node.args[1]):
                continue
            changed += 1
            if node.target is _aten.index.Tensor:
                substitute(node, inline(node, _index, node.args, {}))
            else:
                node.args = (node.args[0], inline(node, _positions, (node.args[1],), {}), *node.args[2:])
    return changed


def _is_among(indices: Sequence[Node | None]) -> bool:
    given = [index is not None for index in indices]
    masks = [index is not None and index.meta["val"].dtype == torch.bool for index in indices]
    return any(masks) and not (masks[0] and sum(given) == 1)


def _positions(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A mask of n axes as n vectors of whole numbers."""
    result: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype != torch.bool:
            result.append(index)
        else:
            where = index.nonzero()
            result.extend(where[:, axis] for axis in range(index.dim()))
    return result


def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Any:
    return _aten.index.Tensor(x, _positions(indices))


WORKAROUND = Workaround(
    reason="ONNX's converter and OpenVINO take a mask as an index only where it is the first and the only one (the positions of "
    "Qwen3-Omni's text are written with `position_ids[..., i, mask] = ...`).",
    upstream="none: onnxscript's aten_index_put says that it does not support it",
    targets=("aten.index.Tensor", "aten.index_put.default"),
    apply=write_positions,
)
