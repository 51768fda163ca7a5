"""Pooling that XNNPACK does not compute: max pooling in the form for which ExecuTorch has a kernel, a pool over all as a mean."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...insertion import Inserter, replace
from ...upper_sizes import upper_bound

_aten = torch.ops.aten

# input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
_AVG_POOL_DEFAULTS: tuple[Any, ...] = (None, None, (), 0, False, True, None)


def apply(program: ExportedProgram) -> int:
    """Rewrite `max_pool2d` with `ceil_mode`, wide strides or another dtype, and `avg_pool2d` over everything; returns how many."""
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_aten.avg_pool2d.default):
        if _covers_all(node):
            replace(node, Inserter(node).call(_aten.mean.dim, node.args[0], [-1, -2], True))
            count += 1
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


def _covers_all(node: Node) -> bool:
    """Whether the window is never smaller than the input, as the last one of EfficientNet (2560 x 2560, rounded up).

    ExecuTorch's kernel walks the whole window, in and out of the input: minutes for one picture.
    """
    given: list[Any] = [*node.args, *_AVG_POOL_DEFAULTS[len(node.args) :]]
    source, window, stride, padding, ceil_mode, _, divisor = given
    if divisor is not None or any(_pair(padding or 0)) or not ceil_mode or _pair(stride or window) != _pair(window):
        return False
    sizes = [upper_bound(size) for size in source.meta["val"].shape[-2:]]
    return all(size is not None and size <= side for size, side in zip(sizes, _pair(window), strict=True))


def _pair(value: Any) -> tuple[int, int]:
    sizes = [value] if isinstance(value, int) else list(value)
    return (sizes[0], sizes[-1])
