"""Arithmetic and order among booleans: engines have them for numbers only."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround
from ..inline import inline, substitute

_aten = torch.ops.aten

#: What is computed in whole numbers; its first result, unless it is an index, is boolean again.
_AS_NUMBERS = frozenset(
    {
        _aten.amax.default,
        _aten.amin.default,
        _aten.max.default,
        _aten.min.default,
        _aten.max.dim,
        _aten.min.dim,
        _aten.cummax.default,
        _aten.cummin.default,
    }
)
_PAIRS = {
    _aten.add.Tensor: _aten.logical_or.default,
    _aten.maximum.default: _aten.logical_or.default,
    _aten.minimum.default: _aten.logical_and.default,
}


def count_booleans(program: ExportedProgram) -> int:
    """Compute sums, largest and smallest values of booleans by numbers or by logic; returns how many there were."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in list(module.graph.nodes):
            if node.op != "call_function" or not _is_boolean(node):
                continue
            if node.target in _PAIRS and len(node.args) == 2 and all(map(_is_boolean, node.args)):
                node.target, node.kwargs = _PAIRS[node.target], {}
                changed += 1
            elif node.target in _AS_NUMBERS:
                substitute(node, inline(node, _through_numbers(node.target), node.args, node.kwargs))
                changed += 1
    return changed


def _is_boolean(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, Node) else None
    first = value[0] if isinstance(value, list | tuple) and value else value
    return isinstance(first, torch.Tensor) and first.dtype == torch.bool


def _through_numbers(op: Any) -> Any:
    def compute(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = op(x.to(torch.int32), *args, **kwargs)
        if isinstance(result, torch.Tensor):
            return result.to(torch.bool)
        return [result[0].to(torch.bool), *result[1:]]

    return compute


WORKAROUND = Workaround(
    reason="ONNX has no Add and ArgMax of booleans, OpenVINO no Maximum and ReduceMax of them; masks are joined by all of these.",
    upstream="none: their operators take numbers only.",
    targets=("aten.add.Tensor", "aten.amax.default", "aten.max.dim", "aten.maximum.default", "aten.minimum.default"),
    apply=count_booleans,
)
