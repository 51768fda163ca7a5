"""A split along an axis of open size, as slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from ....repair.inline import inline, substitute
from ....workarounds import Workaround

_aten = torch.ops.aten


def apply(program: ExportedProgram) -> int:
    """Take the pieces one by one where the converter would ask for a sequence of them; returns how many splits there were."""
    count = 0
    for op, size in ((_aten.split.Tensor, _given), (_aten.chunk.default, _ceiling)):
        for node in program.graph.find_nodes(op="call_function", target=op):
            if not (isinstance(_length(node), int) and isinstance(node.args[1], int)):
                substitute(node, inline(node, _slices(len(node.meta["val"]), size), node.args, {}))
                count += 1
    return count


def _slices(pieces: int, size: Callable[[Tensor, Any, int], Any]) -> Callable[..., list[Tensor]]:
    def cut(x: Tensor, number: Any, dim: int = 0) -> list[Tensor]:
        step = size(x, number, dim)
        return [_aten.slice.Tensor(x, dim, i * step, (i + 1) * step) for i in range(pieces)]

    return cut


def _given(x: Tensor, number: Any, dim: int) -> Any:
    return number


def _ceiling(x: Tensor, number: Any, dim: int) -> Any:
    return (x.shape[dim] + number - 1) // number


def _length(node: Node) -> Any:
    source: Any = node.args[0]
    return source.meta["val"].shape[node.args[2] if len(node.args) > 2 else 0]


WORKAROUND = Workaround(
    reason="The converter writes a split of an axis of open size as a sequence, and onnxscript's constant folding fails on it.",
    upstream="none: no report found; onnxscript 0.7.2, RuntimeError while folding SplitToSequence.",
    targets=("aten.split.Tensor", "aten.chunk.default"),
    apply=apply,
)
