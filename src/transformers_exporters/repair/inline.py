"""Puts a plain function's ops in the place of one node of a traced graph, by tracing just that function.

`ExportedProgram.run_decompositions` traces the whole graph again to replace a handful of ops: 30 s for a 30-layer Llama
(one thread, torch 2.13). Tracing only the nodes that need it takes milliseconds each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree


class CannotInline(Exception):
    """A function's trace cannot stand in a graph: it makes constants, or is about memory."""


def inline(node: Node, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Insert what `function(*args, **kwargs)` computes in front of `node`.

    Args:
        node: Where; its source line and module path are given to the new nodes.
        function: Takes and returns tensors, numbers and containers of them.
        args: Positional arguments; nodes, at any depth, stand for their values.
        kwargs: The same by keyword.

    Returns:
        What the function returned, with a node in the place of every tensor.

    Raises:
        CannotInline: If the trace holds constants, strides or torch's primitives.
    """
    return insert(node, trace(node, function, args, kwargs), args, kwargs)


def trace(node: Node, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> GraphModule:
    """The graph of `function(*args, **kwargs)` over the nodes among its arguments, under the fake mode of `node`."""
    leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    values = [leaf.meta["val"] for leaf in leaves if isinstance(leaf, Node)]

    def run(*tensors: Any) -> Any:
        feed = iter(tensors)
        own, named = pytree.tree_unflatten([next(feed) if isinstance(x, Node) else x for x in leaves], structure)
        result = function(*own, **named)
        return list(result) if isinstance(result, tuple) else result  # a named tuple would be a node without a value

    known = pytree.tree_leaves((values, node.meta.get("val")))
    mode = detect_fake_mode([value for value in known if isinstance(value, torch.Tensor)])
    if mode is None:
        raise CannotInline(f"{node.target} has no traced values")
    # A comparison of sizes in a decomposition (such as the checks of group_norm) must not pin the symbols that the rest of
    # the graph is written in: BiT's batch became the traced one.
    quiet = mode.shape_env.suppress_guards() if mode.shape_env is not None else contextlib.nullcontext()
    if mode.shape_env is not None:
        # Numbers of data that an op made when it was run again to look at its result; no node of this trace binds them.
        mode.shape_env.pending_fresh_unbacked_symbols.clear()
    # Some C++ kernels (unfold, pad) cannot take open sizes; the Python dispatcher knows others.
    with torch.no_grad(), mode, quiet, enable_python_dispatcher():
        body = make_fx(run, tracing_mode="real")(*values)
    if any(str(inner.target).startswith(("prims.", "aten.as_strided")) for inner in body.graph.nodes):
        raise CannotInline(f"{node.target}: its decomposition is about memory or torch's primitives")
    if any(inner.op == "get_attr" for inner in body.graph.nodes):
        raise CannotInline(f"{node.target}: its decomposition makes a constant")
    return body


def insert(node: Node, body: GraphModule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Copy a traced function in front of `node`, fed by the nodes among `args` and `kwargs`; returns its results."""
    graph: Graph = node.graph
    feed = iter([leaf for leaf in pytree.tree_leaves((tuple(args), dict(kwargs))) if isinstance(leaf, Node)])
    known: dict[Node, Any] = {}
    trail = {key: value for key, value in node.meta.items() if key in ("stack_trace", "nn_module_stack")}
    result: Any = None
    for inner in body.graph.nodes:
        if inner.op == "placeholder":
            known[inner] = next(feed)
        elif inner.op == "output":
            result = torch.fx.node.map_arg(inner.args[0], known.__getitem__)
        else:
            with graph.inserting_before(node):
                copy = graph.node_copy(inner, known.__getitem__)
            if copy.target is torch.ops.aten.view.default:
                copy.target = torch.ops.aten.reshape.default  # see fixes/view_to_reshape
            copy.meta = {**inner.meta, **trail}
            known[inner] = copy
    return result


def substitute(node: Node, result: Any) -> None:
    """Let `result`, a node or a list of them, take the place of `node` and of the picks from its results."""
    if isinstance(result, Node):
        _take_value(result, node)
        node.replace_all_uses_with(result)
    else:
        for user in list(node.users):
            piece = result[user.args[1]]
            _take_value(piece, user)
            user.replace_all_uses_with(piece)
            node.graph.erase_node(user)
    node.graph.erase_node(node)


def _take_value(made: Node, node: Node) -> None:
    """Let a result keep the traced value that it replaces. A size that is data was traced anew: it is noted which it was."""
    new, old = made.meta.get("val"), node.meta["val"]
    if isinstance(new, torch.Tensor) and isinstance(old, torch.Tensor):
        same = zip(map(_symbol, old.shape), map(_symbol, new.shape), strict=False)
        made.meta["same_sizes"] = {a: b for a, b in same if a is not None and b is not None and a != b}
    made.meta["val"] = old


def _symbol(size: Any) -> Any:
    """The symbol that a size is; None for a number or arithmetic."""
    return size.node.expr if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol else None
