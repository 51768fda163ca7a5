"""`unbind` of a vector into numbers, or along an axis whose size is data: one `select` for each."""

from __future__ import annotations

import operator

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround


def to_select(program: ExportedProgram) -> int:
    """Take the items one by one; returns how many nodes were rewritten."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.unbind.int):
            changed += _rewrite(module, node)
    return changed


def _rewrite(module: GraphModule, node: Node) -> bool:
    source = node.args[0]
    assert isinstance(source, Node)
    items = list(node.users)
    axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    value = source.meta["val"]
    known = value.dim() != 1 and isinstance(value.shape[axis], int)
    if known or any(item.target is not operator.getitem for item in items):
        return False
    for item in items:
        with module.graph.inserting_before(item):
            part = module.graph.call_function(torch.ops.aten.select.int, (source, axis, item.args[1]))
        part.meta = dict(item.meta)
        item.replace_all_uses_with(part)
        module.graph.erase_node(item)
    module.graph.erase_node(node)
    return True


WORKAROUND = Workaround(
    reason="A list that a model makes of a tensor has as many items as the sample gave, and the graph asserts that; passes that "
    "run a node again (type promotion of the ONNX exporter) find the axis open and ask whether it is empty (Qwen3-Omni's audio chunks).",
    upstream="none: torch._refs.unbind compares the size with 0, also where it is unbacked.",
    targets=("aten.unbind.int",),
    apply=to_select,
)
