"""Reductions whose absent argument an engine takes for another value, or for an error: the argument is stated."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround
from ..inline import inline

_aten = torch.ops.aten
_SPREADS = frozenset({_aten.var.correction, _aten.std.correction, _aten.var_mean.correction, _aten.std_mean.correction})
_LIMITS = frozenset({_aten.amax.default, _aten.amin.default})
_MEANS = frozenset({_aten.mean.default, _aten.mean.dim})
_SUMS = frozenset(
    {_aten.sum.default, _aten.sum.dim_IntList, _aten.prod.default, _aten.prod.dim_int, _aten.cumsum.default}
)
#: Whole numbers whose sum is int64 unless another dtype is stated.
_SMALL = frozenset({torch.int32, torch.int16, torch.int8, torch.uint8})


def state_defaults(program: ExportedProgram) -> int:
    """Name the correction of every spread, the axes of every largest or smallest value, the dtype of every mean and sum."""
    changed = 0
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in list(module.graph.nodes):
                changed += node.op == "call_function" and (_correction(node) or _axes(node) or _dtype(node))
    return changed


def _correction(node: Node) -> bool:
    if node.target not in _SPREADS or node.kwargs.get("correction") is not None:
        return False
    node.kwargs = {**node.kwargs, "correction": 1}
    return True


def _axes(node: Node) -> bool:
    if node.target not in _LIMITS or (node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")):
        return False
    source: Any = node.args[0]
    rank = source.meta["val"].dim()
    if rank == 0:
        node.replace_all_uses_with(source)
        node.graph.erase_node(node)
        return True
    kept = node.args[2:] or ((node.kwargs["keepdim"],) if "keepdim" in node.kwargs else ())
    node.args, node.kwargs = (source, list(range(rank)), *kept), {}
    return True


def _dtype(node: Node) -> bool:
    """Cast what is reduced to the dtype of the result: that of a mean in floats, and of a sum of booleans.

    A sum of small whole numbers keeps its statement: it would be int64 without (the ends of packed sequences are int32).
    """
    stated = node.kwargs.get("dtype") is not None
    if node.target not in _MEANS | _SUMS or (node.target in _MEANS and not stated):
        return False
    source: Any = node.args[0]
    before, after = source.meta["val"].dtype, node.meta["val"].dtype
    if before == after and (not stated or after in _SMALL):
        return False
    if before != after:
        node.args = (inline(node, _aten.to.dtype, (source, after), {}), *node.args[1:])
    if after not in _SMALL:
        node.kwargs = {name: value for name, value in node.kwargs.items() if name != "dtype"}
    return True


WORKAROUND = Workaround(
    reason="OpenVINO takes a variance without a correction for the biased one, onnxscript a mean of integers into floats for a mean of "
    "integers, and it has no largest value of a whole tensor (Qwen3-ASR). To OpenVINO a running sum of booleans is boolean, and so is "
    "its product with them (positions of OPT from a boolean mask).",
    upstream="none: no report found; openvino 2026.4.1, onnxscript 0.7.2 (aten_mean_dim, aten_amax).",
    targets=("aten.var.correction", "aten.mean.dim", "aten.amax.default", "aten.amin.default", "aten.cumsum.default"),
    apply=state_defaults,
)
