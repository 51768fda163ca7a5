"""From the edge dialect to a program, without computing any fake value again or copying a weight.

`EdgeProgramManager.to_executorch` walks the graph twice to refresh values that our edge graph has already, the delegated
parts included; with symbolic sizes that is a quarter of a lowering.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch.utils._pytree as pytree
from executorch.exir import EdgeProgramManager
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.passes.legalize_portable_dim_order_pass import LegalizePortableDimOrderPass
from executorch.exir.passes.replace_view_copy_with_view_pass import ReplaceViewCopyWithViewPass
from executorch.exir.passes.spec_prop_pass import SpecPropPass, make_spec
from executorch.exir.program import _program
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from .layout import is_row_major, orders_by_traced_strides
from .views import ViewsThatFit
from .weight_bytes import constants_by_reference


def to_execution(edge: EdgeProgramManager, config: Any) -> Any:
    """`edge.to_executorch(config)`: an `ExecutorchProgramManager`.

    Args:
        edge: What a target's `delegate` returned.
        config: An `ExecutorchBackendConfig`.
    """
    with _lean_passes(), orders_by_traced_strides(), constants_by_reference(edge.exported_program()):
        return edge.to_executorch(config)


@contextmanager
def _lean_passes() -> Iterator[None]:
    everything = _program.edge_to_executorch_passes

    def needed(*args: Any, **kwargs: Any) -> list[Any]:
        replaced = {
            SpecPropPass: _KnownSpecs,
            LegalizePortableDimOrderPass: _RowMajorAlready,
            ReplaceViewCopyWithViewPass: ViewsThatFit,
        }
        return [replaced[type(each)]() if type(each) in replaced else each for each in everything(*args, **kwargs)]

    with mock.patch.object(_program, "edge_to_executorch_passes", needed):
        yield


class _KnownSpecs(SpecPropPass):  # executorch is untyped
    """Memory specs from the values that the nodes have."""

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Set every node's `spec`; a graph with a node that lost its value is computed again."""
        modules = [m for m in graph_module.modules() if isinstance(m, GraphModule)]
        if not all("val" in n.meta or n.op in ("output", "get_attr") for m in modules for n in m.graph.nodes):
            return super().__call__(graph_module)
        for module in modules:
            for node in module.graph.nodes:
                if node.op == "output":
                    node.meta["spec"] = pytree.tree_map(lambda n: getattr(n, "meta", {}).get("spec"), node.args[0])
                elif node.target is operator.getitem and isinstance(node.args[0].meta.get("spec"), list | tuple):
                    node.meta["spec"] = node.args[0].meta["spec"][node.args[1]]
                elif node.target is not executorch_call_delegate or "spec" not in node.meta:
                    node.meta["spec"] = pytree.tree_map(make_spec, node.meta.get("val"))
        # A module of its own: executorch empties the old one before it takes over the new one's parts.
        moved = GraphModule(graph_module, graph_module.graph)
        moved.meta.update(graph_module.meta)
        return PassResult(moved, True)


class _RowMajorAlready(LegalizePortableDimOrderPass):
    """Looks before it walks: `edge` keeps memory row-major, so there is hardly ever a copy to insert."""

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Insert copies where a kernel needs row-major memory and does not get it."""
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target in self._target_ops:
                source = node.args[0].meta["val"]
                if not is_row_major(source):
                    return super().__call__(graph_module)
        return PassResult(graph_module, False)
