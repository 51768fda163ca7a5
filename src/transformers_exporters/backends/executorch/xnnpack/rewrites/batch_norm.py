"""Batch norm of anything but images as a product and a sum; executorch's passes for XNNPACK take 4-D tensors, as of convolutions."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...insertion import Inserter, replace
from ..ops import is_plain_float

_aten = torch.ops.aten
_PASSED_ON = (_aten.clone.default, _aten.contiguous.default, _aten.dropout.default, _aten.detach.default)


def apply(program: ExportedProgram) -> int:
    """Rewrite `batch_norm` in eval mode of float32 tensors that are not 4-D, or come from a product; returns how many."""
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_aten.batch_norm.default):
        source, weight, bias, mean, variance, training = node.args[:6]
        if training or mean is None or not is_plain_float(source):
            continue
        if source.meta["val"].dim() == 4 and not _is_product(source):
            continue
        insert = Inserter(node)
        factor = insert.call(_aten.rsqrt.default, insert.call(_aten.add.Tensor, variance, float(node.args[7])))
        if weight is not None:
            factor = insert.call(_aten.mul.Tensor, factor, weight)
        result = insert.call(_aten.sub.Tensor, source, _by_channel(insert, mean, source))
        result = insert.call(_aten.mul.Tensor, result, _by_channel(insert, factor, source))
        if bias is not None:
            result = insert.call(_aten.add.Tensor, result, _by_channel(insert, bias, source))
        replace(node, result)
        count += 1
    return count


def _is_product(source: Node) -> bool:
    """Whether a tensor is what a linear layer gives: executorch folds the norm into its weights, along the last axis."""
    while source.target in _PASSED_ON and isinstance(source.args[0], Node):
        source = source.args[0]
    return source.target is _aten.linear.default


def _by_channel(insert: Inserter, values: Node, like: Node) -> Node:
    """values [channels] as [channels, 1, ...], to go along axis 1 of `like`."""
    rank = like.meta["val"].dim()
    return insert.call(_aten.reshape.default, values, [-1, *([1] * (rank - 2))]) if rank > 2 else values
