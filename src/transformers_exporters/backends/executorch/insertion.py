"""Insert operators into a traced graph together with their fake values, which every later stage reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch.fx.passes.shape_prop import _extract_tensor_metadata

from ...repair.decompose import INHERITED


class Inserter:
    """Puts new nodes in front of `before`, at its source line.

    A node's value is computed from its arguments' values under the graph's own fake mode, so symbols are kept.
    """

    def __init__(self, before: Node) -> None:
        self._before = before
        self._graph: Graph = before.graph

    def call(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Insert `op(*args, **kwargs)`; nodes among the arguments are allowed at any depth."""
        with self._graph.inserting_before(self._before):
            node = self._graph.call_function(op, args, kwargs)
        values = map_arg((args, kwargs), lambda n: n.meta["val"])
        mode = detect_fake_mode([n.meta.get("val") for n in node.all_input_nodes] + [self._before.meta.get("val")])
        # Without the Python dispatcher some operators compute their shape in C++, which turns symbols into numbers.
        with mode if mode is not None else nullcontext(), enable_python_dispatcher(), torch.no_grad():
            node.meta["val"] = op(*values[0], **values[1])
        for key in INHERITED:
            if key in self._before.meta:
                node.meta[key] = self._before.meta[key]
        return node

    def size(self, node: Node, axis: int) -> Any:
        """The size of `node`'s axis: an int, or a node that computes it. The runtime does not count axes from the end."""
        axis %= node.meta["val"].dim()
        size = node.meta["val"].shape[axis]
        return self.call(torch.ops.aten.sym_size.int, node, axis) if isinstance(size, torch.SymInt) else size


class EdgeInserter(Inserter):
    """Puts new nodes into a graph in the edge dialect."""

    def call(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """With the description that the choice of a kernel reads."""
        node = super().call(op, *args, **kwargs)
        if isinstance(node.meta["val"], torch.Tensor):
            node.meta["tensor_meta"] = _extract_tensor_metadata(node.meta["val"])
        return node


def replace(old: Node, new: Node) -> None:
    """Let `new` take `old`'s place and erase `old`."""
    old.replace_all_uses_with(new)
    old.graph.erase_node(old)
