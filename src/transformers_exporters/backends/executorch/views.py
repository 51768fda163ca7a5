"""Views that share memory, except those that executorch cannot share."""

from __future__ import annotations

import math
from typing import Any

import torch
from executorch.exir import memory
from executorch.exir.dialects._ops import ops
from executorch.exir.passes.replace_view_copy_with_view_pass import ReplaceViewCopyWithViewPass, _is_view_copy
from executorch.exir.tensor import determine_tensor_dynanism
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from ...repair.functional import is_mutable
from ...repair.meta_keys import size_key
from .insertion import EdgeInserter, replace
from .upper_sizes import upper_bound

_edge = ops.edge.aten


def unsqueezes_as_views(program: ExportedProgram) -> int:
    """Say a new axis of size one as a view, which shares memory where `unsqueeze_copy` writes all of it again.

    Grouped attention gives the cached keys and values such an axis at every step, a mask gets one in every layer.

    Returns how many there were.
    """
    count = 0
    known: dict[Any, Node] = {}
    for node in list(program.graph.nodes):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            known.setdefault(size_key(value), node)
        if node.target is not _edge.unsqueeze_copy.default:
            continue
        insert = EdgeInserter(node)
        source, axis = node.args
        sizes: list[Any] = []
        for place, size in enumerate(source.meta["val"].shape):
            if isinstance(size, torch.SymInt):
                if size_key(size) not in known:
                    known[size_key(size)] = insert.size(source, place)
                size = known[size_key(size)]
            sizes.append(size)
        sizes.insert(axis % (len(sizes) + 1), 1)
        view = insert.call(_edge.view_copy.default, source, sizes)
        view.meta = dict(node.meta)
        replace(node, view)
        count += 1
    return count


class ViewsThatFit(ReplaceViewCopyWithViewPass):  # executorch is untyped
    """Lets a view share its base's memory where both are of fixed sizes, or both are not, and of one largest size.

    Of 16 positions, `[s, 16 // s]` is a view with sizes that are not fixed (Pvt); executorch 1.5.1 refuses it. The bounds of
    a view's axes, each the largest by itself, may make it larger than its base (the windows of Qwen2.5-VL); the runtime
    refuses a tensor that ends behind the planned memory. A base that is written into later would change under its view.
    These stay copies.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Replace the views."""
        kept = {
            node: node.target
            for module in graph_module.modules()
            if isinstance(module, GraphModule)
            for node in module.graph.nodes
            if _is_view_copy(node)
            and (
                determine_tensor_dynanism(node.meta["val"].shape) != node.args[0].meta["spec"].shape_dynamism
                or _largest(node.meta["val"]) > _largest(node.args[0].meta["val"])
                or _changes_under(node)
            )
        }
        for node in kept:
            node.target = memory.alloc  # which is no view, for as long as executorch's pass runs
        try:
            return super().call(graph_module)
        finally:
            for node, target in kept.items():
                node.target = target

    def ensures(self, graph_module: GraphModule) -> None:
        """Some views are left."""


def _changes_under(view: Node) -> bool:
    """Whether an op writes into the view's base before the view's last reader."""
    base = view.args[0]
    writers = [user for user in base.users if user.args[0] is base and is_mutable(user) and user > view]
    return any(user > writer for writer in writers for user in view.users)


def _largest(value: torch.Tensor) -> int:
    """The number of elements for which memory is planned."""
    return math.prod(upper_bound(size) or 1 for size in value.shape)
