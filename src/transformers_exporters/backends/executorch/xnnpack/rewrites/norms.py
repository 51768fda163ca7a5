"""Means over the last axis as a product with a constant column, so that norms stay inside XNNPACK.

executorch's table for XNNPACK has a mean only for the two image axes of a 4-D tensor. A fully connected layer whose one
row of weights is 1/n computes the mean over the last axis of any tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...insertion import Inserter, replace
from ...weights import add_weight
from ..ops import is_plain_float

_aten = torch.ops.aten


def apply(program: ExportedProgram) -> int:
    """Rewrite `mean` over the last axis, `layer_norm` and `rms_norm` of float32 tensors; returns how many."""
    columns: dict[int, Node] = {}
    count = 0
    for node in list(program.graph.nodes):
        if node.op != "call_function" or node.target not in _REWRITES:
            continue
        source = node.args[0]
        if not isinstance(source, Node) or not is_plain_float(source) or not is_plain_float(node):
            continue
        width = source.meta["val"].shape[-1] if source.meta["val"].dim() > 1 else None
        if not isinstance(width, int):
            continue
        if width not in columns and _accepts(node):
            columns[width] = _column(program, width)
        if _accepts(node):
            replace(node, _REWRITES[node.target](Inserter(node), node, columns[width]))
            count += 1
    return count


def _accepts(node: Node) -> bool:
    if node.target is _aten.mean.dim:
        rank = node.args[0].meta["val"].dim()
        dims = node.args[1]
        return dims is not None and [d % rank for d in dims] == [rank - 1] and node.kwargs.get("dtype") is None
    return len(node.args[1]) == 1


def _mean(insert: Inserter, node: Node, column: Node) -> Node:
    mean = insert.call(_aten.linear.default, node.args[0], column)
    keep = len(node.args) > 2 and node.args[2]
    return mean if keep else insert.call(_aten.squeeze.dim, mean, -1)


def _layer_norm(insert: Inserter, node: Node, column: Node) -> Node:
    source, _, weight, bias, eps = (*node.args, *(None, None, None, 1e-5)[len(node.args) - 1 :])[:5]
    centred = insert.call(_aten.sub.Tensor, source, insert.call(_aten.linear.default, source, column))
    return _scaled(insert, centred, weight, bias, eps, column)


def _rms_norm(insert: Inserter, node: Node, column: Node) -> Node:
    source, _, weight, eps = (*node.args, *(None, None, None)[len(node.args) - 1 :])[:4]
    return _scaled(insert, source, weight, None, torch.finfo(torch.float32).eps if eps is None else eps, column)


def _scaled(insert: Inserter, source: Node, weight: Any, bias: Any, eps: float, column: Node) -> Node:
    square = insert.call(_aten.mul.Tensor, source, source)
    variance = insert.call(_aten.add.Tensor, insert.call(_aten.linear.default, square, column), eps)
    result = insert.call(_aten.mul.Tensor, source, insert.call(_aten.rsqrt.default, variance))
    if weight is not None:
        result = insert.call(_aten.mul.Tensor, result, weight)
    return result if bias is None else insert.call(_aten.add.Tensor, result, bias)


_REWRITES = {_aten.mean.dim: _mean, _aten.layer_norm.default: _layer_norm, _aten.rms_norm.default: _rms_norm}


def _column(program: ExportedProgram, width: int) -> Node:
    """A weight of the program: float32 [1, width], every entry 1 / width."""
    return add_weight(program, f"mean_of_{width}", torch.full((1, width), 1.0 / width))
