"""Max pooling that XNNPACK does not compute, in the form for which ExecuTorch has a kernel."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...insertion import Inserter, replace

_aten = torch.ops.aten


def apply(program: ExportedProgram) -> int:
    """Rewrite `max_pool2d` with `ceil_mode`, wide strides or another dtype; returns how many."""
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_aten.max_pool2d.default):
        if not _xnnpack_computes(node):
            insert = Inserter(node)
            both = insert.call(_aten.max_pool2d_with_indices.default, *node.args, **node.kwargs)
            replace(node, insert.call(operator.getitem, both, 0))
            count += 1
    return count


def _xnnpack_computes(node: Node) -> bool:
    kernel, stride = _pair(node.args[1]), _pair((node.args[2] if len(node.args) > 2 else None) or node.args[1])
    ceil_mode = len(node.args) > 5 and bool(node.args[5])
    fits = all(s <= k for s, k in zip(stride, kernel, strict=True)) and node.meta["val"].dim() == 4
    return fits and not ceil_mode and node.meta["val"].dtype == torch.float32


def _pair(value: Any) -> tuple[int, int]:
    sizes = [value] if isinstance(value, int) else list(value)
    return (sizes[0], sizes[-1])
