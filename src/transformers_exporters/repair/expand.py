"""Decomposes single nodes of a traced graph in place, by our own rules first and torch's after them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.export.decomp_utils import CustomDecompTable
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.utils import _pytree as pytree

from . import decompositions
from .inline import CannotInline, insert, substitute, trace


class CannotExpand(Exception):
    """A node's op has no decomposition that holds for other sizes than the traced ones."""


def expand(module: GraphModule, names: Collection[str]) -> int:
    """Replace every node of `module` whose op (by `str(target)`) is in `names` by its decomposition, in place.

    Args:
        module: The graph, with fake tensors under `meta["val"]`.
        names: Ops to decompose, by one step: what a decomposition consists of may need one in turn.

    Returns:
        How many nodes were replaced. A node without a decomposition stays.
    """
    count = 0
    for node in list(module.graph.nodes):
        if node.op != "call_function" or str(node.target) not in names:
            continue
        try:
            body = _body(node)
        except (CannotExpand, CannotInline, NotImplementedError):  # the last: a rule that lacks a case
            continue
        substitute(node, insert(node, body, node.args, node.kwargs))
        count += 1
    if count:
        module.graph.lint()
    return count


@cache
def rules() -> dict[str, Callable[..., Any]]:
    """Our own decompositions, by op name (`aten.exp2.default`): every file of `decompositions` has some in `RULES`."""
    found: dict[str, Callable[..., Any]] = {}
    for info in pkgutil.iter_modules(decompositions.__path__):
        found |= importlib.import_module(f"{decompositions.__name__}.{info.name}").RULES
    return found


@cache
def _table() -> dict[Any, Any]:
    """torch's decompositions: those that export prefers, then all others that are registered."""
    return {**decomposition_table, **CustomDecompTable()}


def _body(node: Node) -> GraphModule:
    """The decomposition of one node, as a graph over the tensors and symbolic numbers among its arguments."""
    target = node.target
    rule = rules().get(str(target)) or _table().get(target)
    composite = isinstance(target, torch._ops.OpOverload) and target.has_kernel_for_dispatch_key(
        torch._C.DispatchKey.CompositeImplicitAutograd
    )
    if rule is None and not composite:
        raise CannotExpand(str(target))
    body = trace(node, rule if rule is not None else target.decompose, node.args, node.kwargs)  # type: ignore[union-attr]
    made, traced = _constant_axes(body.graph.output_node().args[0]), _constant_axes(node)
    if any(new and not old for a, b in zip(made, traced, strict=False) for new, old in zip(a, b, strict=True)):
        raise CannotExpand(f"{target}: its decomposition holds only for the traced sizes")
    return body


def _constant_axes(result: Any) -> list[list[bool]]:
    """Which axes of the tensors that a node (or a list of nodes) returns have a constant size."""
    values = [leaf.meta["val"] if isinstance(leaf, Node) else leaf for leaf in pytree.tree_leaves(result)]
    tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return [[not free_symbols(size) for size in tensor.shape] for tensor in tensors]
