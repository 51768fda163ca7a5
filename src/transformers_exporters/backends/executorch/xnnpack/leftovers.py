"""Take apart what stands for an XNNPACK operator and was not given to XNNPACK.

Nodes whose sizes may be 0 (a count of `nonzero`) stay out of XNNPACK, and so do parts that would wait for themselves.
A batched product among them becomes `expand`, `view` and `bmm`, which the runtime has kernels for.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from executorch.exir.dialects._ops import ops
from torch.export import ExportedProgram
from torch.fx import Node

from ..insertion import EdgeInserter, replace
from .ops import BATCHED_MATMUL

_edge = ops.edge.aten


def apply(program: ExportedProgram) -> int:
    """Rewrite every batched product that is outside of a part; returns how many."""
    left_over = [
        node
        for node in program.graph.nodes
        if node.op == "call_function" and getattr(node.target, "_op", None) is BATCHED_MATMUL
    ]
    for node in left_over:
        replace(node, _in_parts(node))
    return len(left_over)


def _in_parts(node: Node) -> Node:
    insert = EdgeInserter(node)
    left, right = (arg for arg in node.args if isinstance(arg, Node))
    leading = [_leading_size(insert, (left, right), axis) for axis in range(node.meta["val"].dim() - 2)]
    count = _product(insert, leading)
    flat = []
    for factor in (left, right):
        own = [insert.size(factor, -2), insert.size(factor, -1)]
        wide = insert.call(_edge.expand_copy.default, factor, [*leading, *own])
        flat.append(insert.call(_edge.view_copy.default, wide, [count, *own]))
    product = insert.call(_edge.bmm.default, *flat)
    return insert.call(_edge.view_copy.default, product, [*leading, insert.size(left, -2), insert.size(right, -1)])


def _leading_size(insert: EdgeInserter, factors: tuple[Node, Node], axis: int) -> Any:
    """The size of the product's axis: of the first factor that has the axis and does not repeat along it."""
    rank = max(factor.meta["val"].dim() for factor in factors)
    places = [(factor, axis - rank) for factor in factors if axis >= rank - factor.meta["val"].dim()]
    wide = [(factor, place) for factor, place in places if not _is_one(factor.meta["val"].shape[place])]
    return insert.size(*(wide or places)[0])


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _product(insert: EdgeInserter, sizes: list[Any]) -> Any:
    fixed = reduce(operator.mul, (size for size in sizes if isinstance(size, int)), 1)
    count: Any = fixed
    for size in sizes:
        if isinstance(size, Node):
            count = size if isinstance(count, int) and count == 1 else insert.call(operator.mul, count, size)
    return count
