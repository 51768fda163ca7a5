"""Memory that a model asks for to fill it later: zeros, since a graph has values and no memory."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from ...workarounds import Workaround

_aten = torch.ops.aten
_FILLED: dict[Any, Any] = {
    _aten.empty.memory_format: _aten.zeros.default,
    _aten.empty_like.default: _aten.zeros_like.default,
    _aten.new_empty.default: _aten.new_zeros.default,
}


def fill(program: ExportedProgram) -> int:
    """Ask for zeros where the graph asks for uninitialized values."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.nodes:
            if node.op == "call_function" and node.target in _FILLED:
                node.target = _FILLED[node.target]
                node.kwargs = {name: value for name, value in node.kwargs.items() if name != "memory_format"}
                changed += 1
    return changed


WORKAROUND = Workaround(
    reason="No engine has uninitialized tensors, and models fill them at once (shifted ids, expanded keys, spatial shapes).",
    upstream="none: what is not there cannot be exported.",
    targets=("aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default"),
    apply=fill,
)
