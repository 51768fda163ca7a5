"""Rewrites `conv1d` and its relatives to the one op that all of them are short for, without tracing anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

_aten = torch.ops.aten
_PLAIN = {_aten.conv1d.default: 1, _aten.conv2d.default: 2, _aten.conv3d.default: 3}
_PADDED = {_aten.conv1d.padding: 1, _aten.conv2d.padding: 2, _aten.conv3d.padding: 3}
_TRANSPOSED = {
    _aten.conv_transpose1d.default: 1,
    _aten.conv_transpose2d.input: 2,
    _aten.conv_transpose3d.input: 3,
}


def unify_convolutions(graph: Graph, wanted: Callable[[Node], bool] = lambda node: True) -> int:
    """Rewrite in place; returns how many. Asymmetric `"same"` padding and unbatched inputs are left to decomposition.

    Args:
        graph: A traced graph.
        wanted: Leaves out the nodes for which it is False.
    """
    count = 0
    for node in graph.nodes:
        if node.op != "call_function" or not wanted(node):
            continue
        arguments = _arguments(node)
        if arguments is not None:
            node.target, node.args, node.kwargs = _aten.convolution.default, arguments, {}
            count += 1
    return count


def _arguments(node: Node) -> tuple[Any, ...] | None:
    for table in (_PLAIN, _PADDED, _TRANSPOSED):
        if node.target in table:
            axes = table[node.target]
            break
    else:
        return None
    schema = node.target._schema
    given: dict[str, Any] = {a.name: a.default_value for a in schema.arguments}
    given.update(zip((a.name for a in schema.arguments), node.args, strict=False))
    given.update(node.kwargs)
    if given["input"].meta["val"].dim() != axes + 2:
        return None
    stride, dilation = per_axis(given["stride"], axes), per_axis(given["dilation"], axes)
    padding: Any = given["padding"]
    if isinstance(padding, str):
        kernel = given["weight"].meta["val"].shape[2:]
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
        if any(size % 2 for size in total):
            return None
        padding = [size // 2 for size in total]
    transposed = node.target in _TRANSPOSED
    extra = per_axis(given["output_padding"], axes) if transposed else [0] * axes
    border = per_axis(padding, axes)
    return (
        given["input"],
        given["weight"],
        given["bias"],
        stride,
        border,
        dilation,
        transposed,
        extra,
        given["groups"],
    )


def per_axis(value: Any, axes: int) -> list[Any]:
    """An op's argument as one value an axis: it may be given as a number or as a list of one."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * axes if len(values) == 1 else values
