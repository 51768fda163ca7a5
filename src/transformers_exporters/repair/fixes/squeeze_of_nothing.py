"""`squeeze` of an axis that is not of size 1: dropped."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround

_SQUEEZES = (torch.ops.aten.squeeze.dim, torch.ops.aten.squeeze.dims)


def drop_squeezes(program: ExportedProgram) -> int:
    """Let the users of a squeeze that removes no axis use its input; returns how many there were."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for target in _SQUEEZES:
            for node in module.graph.find_nodes(op="call_function", target=target):
                source = node.args[0]
                if isinstance(source, Node) and source.meta["val"].dim() == node.meta["val"].dim():
                    node.replace_all_uses_with(source)
                    module.graph.erase_node(node)
                    changed += 1
    return changed


WORKAROUND = Workaround(
    reason="ONNX and OpenVINO refuse to squeeze an axis of another size than 1, where torch does nothing; OpenVINO takes an "
    "open size for 1 (packed features with `squeeze(0)`: Mistral 3).",
    upstream="none: https://onnx.ai/onnx/operators/onnx__Squeeze.html says so",
    targets=("aten.squeeze.dim", "aten.squeeze.dims"),
    apply=drop_squeezes,
)
