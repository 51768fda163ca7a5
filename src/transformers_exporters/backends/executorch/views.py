"""Views that share memory, except those that executorch cannot share."""

from __future__ import annotations

import math

import torch
from executorch.exir import memory
from executorch.exir.passes.replace_view_copy_with_view_pass import ReplaceViewCopyWithViewPass, _is_view_copy
from executorch.exir.tensor import determine_tensor_dynanism
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from .upper_sizes import upper_bound


class ViewsThatFit(ReplaceViewCopyWithViewPass):  # executorch is untyped
    """Lets a view share its base's memory where both are of fixed sizes, or both are not, and of one largest size.

    Of 16 positions, `[s, 16 // s]` is a view with sizes that are not fixed (Pvt); executorch 1.5.1 refuses it. The bounds of
    a view's axes, each the largest by itself, may make it larger than its base (the windows of Qwen2.5-VL); the runtime
    refuses a tensor that ends behind the planned memory. Both stay copies.
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


def _largest(value: torch.Tensor) -> int:
    """The number of elements for which memory is planned."""
    return math.prod(upper_bound(size) or 1 for size in value.shape)
