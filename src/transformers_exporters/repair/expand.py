"""Decomposes single nodes of a traced graph in place, by tracing just them.

`ExportedProgram.run_decompositions` traces the whole graph again to replace a handful of ops: 30 s for a 30-layer Llama
(one thread, torch 2.13). Tracing only the nodes that need it takes milliseconds each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from functools import cache
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._guards import detect_fake_mode
from torch.export.decomp_utils import CustomDecompTable
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.utils import _pytree as pytree


class CannotExpand(Exception):
    """A node's op has no decomposition."""


@cache
def _table() -> dict[Any, Any]:
    """torch's decompositions: those that export prefers, then all others that are registered."""
    return {**decomposition_table, **CustomDecompTable()}


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
            _replace(module.graph, node, _trace(node))
        except CannotExpand:
            continue
        count += 1
    if count:
        module.graph.lint()
    return count


def _trace(node: Node) -> GraphModule:
    """The decomposition of one node, as a graph over the tensors and symbolic numbers among its arguments."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    values = [leaf.meta["val"] for leaf in leaves if isinstance(leaf, Node)]
    target = node.target
    rule = _table().get(target)
    composite = isinstance(target, torch._ops.OpOverload) and target.has_kernel_for_dispatch_key(
        torch._C.DispatchKey.CompositeImplicitAutograd
    )
    if rule is None and not composite:
        raise CannotExpand(str(target))

    def run(*tensors: Any) -> Any:
        feed = iter(tensors)
        args, kwargs = pytree.tree_unflatten([next(feed) if isinstance(x, Node) else x for x in leaves], structure)
        if rule is not None:
            return rule(*args, **kwargs)
        return target.decompose(*args, **kwargs)  # type: ignore[union-attr]

    mode = detect_fake_mode([v for v in pytree.tree_leaves((values, node.meta["val"])) if isinstance(v, torch.Tensor)])
    if mode is None:
        raise CannotExpand(str(target))
    # A comparison of sizes in a decomposition (such as the checks of group_norm) must not pin the symbols that the rest of
    # the graph is written in: BiT's batch became the traced one.
    quiet = mode.shape_env.suppress_guards() if mode.shape_env is not None else contextlib.nullcontext()
    with torch.no_grad(), mode, quiet:
        body = make_fx(run, tracing_mode="real")(*values)
    if any(str(inner.target).startswith(("prims.", "aten.as_strided")) for inner in body.graph.nodes):
        raise CannotExpand(f"{target}: its decomposition is about memory or torch's primitives")
    made, traced = _constant_axes(body.graph.output_node().args[0]), _constant_axes(node)
    if any(new and not old for a, b in zip(made, traced, strict=False) for new, old in zip(a, b, strict=True)):
        raise CannotExpand(f"{target}: its decomposition holds only for the traced sizes")
    return body


def _constant_axes(result: Any) -> list[list[bool]]:
    """Which axes of the tensors that a node (or a list of nodes) returns have a constant size."""
    values = [leaf.meta["val"] if isinstance(leaf, Node) else leaf for leaf in pytree.tree_leaves(result)]
    tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return [[not free_symbols(size) for size in tensor.shape] for tensor in tensors]


def _replace(graph: torch.fx.Graph, node: Node, body: GraphModule) -> None:
    """Inline `body` before `node` and let the results take its place."""
    feed = iter([leaf for leaf in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(leaf, Node)])
    known: dict[Node, Any] = {}
    trail = {key: value for key, value in node.meta.items() if key in ("stack_trace", "nn_module_stack")}
    result: Any = None
    for inner in body.graph.nodes:
        if inner.op == "placeholder":
            known[inner] = next(feed)
        elif inner.op == "output":
            result = torch.fx.node.map_arg(inner.args[0], known.__getitem__)
        elif inner.op == "get_attr":
            raise CannotExpand(f"{node.target}: its decomposition makes a constant")
        else:
            with graph.inserting_before(node):
                copy = graph.node_copy(inner, known.__getitem__)
            copy.meta = {**inner.meta, **trail}
            known[inner] = copy
    if isinstance(result, Node):
        result.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(result)
    else:
        for user in list(node.users):
            piece = result[user.args[1]]
            piece.meta["val"] = user.meta["val"]
            user.replace_all_uses_with(piece)
            graph.erase_node(user)
    graph.erase_node(node)
