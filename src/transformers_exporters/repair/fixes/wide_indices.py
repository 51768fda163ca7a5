"""Indices of 32 bits, which torch takes and kernels do not."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from ...workarounds import Workaround
from ..inline import inline

_aten = torch.ops.aten
#: Ops that index, and the place of their indices among the arguments.
_INDEXING: dict[Any, int] = {
    _aten.gather.default: 2,
    _aten.scatter.src: 2,
    _aten.scatter_.src: 2,
    _aten.scatter.value: 2,
    _aten.scatter_.value: 2,
    _aten.scatter_add.default: 2,
    _aten.scatter_add_.default: 2,
    _aten.index_add.default: 2,
    _aten.index_add_.default: 2,
    _aten.index.Tensor: 1,
}


def widen(program: ExportedProgram) -> int:
    """Give each op that indexes 64-bit indices; returns how many nodes were changed."""
    changed = 0
    for op, place in _INDEXING.items():
        for node in program.graph.find_nodes(op="call_function", target=op):
            given: Any = node.args[place]
            wide = map_arg(given, functools.partial(_widened, node))
            if wide != given:
                node.args = (*node.args[:place], wide, *node.args[place + 1 :])
                changed += 1
    return changed


def _widened(node: Node, index: Node) -> Any:
    if index.meta["val"].dtype != torch.int32:
        return index
    return inline(node, lambda x: x.to(torch.int64), (index,), {})


WORKAROUND = Workaround(
    reason="ExecuTorch's gather and scatter refuse indices of 32 bits when they run, and the converter to ONNX joins them with "
    "64-bit ones in one tensor, which no runtime opens.",
    upstream="none: no report found; executorch 1.5.1 (kernels/portable/cpu/util/index_util.cpp), onnxscript 0.7.2",
    targets=tuple(str(op) for op in _INDEXING),
    apply=widen,
)
