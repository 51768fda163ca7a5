"""`squeeze` names the axes that it removes; one that removes none is dropped."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ...workarounds import Workaround

_SQUEEZES = (torch.ops.aten.squeeze.default, torch.ops.aten.squeeze.dim, torch.ops.aten.squeeze.dims)


def name_squeezed(program: ExportedProgram) -> int:
    """Write every squeeze as one of the axes whose size is 1 in the trace; returns how many had to be changed."""
    changed = 0
    for module in program.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for target in _SQUEEZES:
            for node in module.graph.find_nodes(op="call_function", target=target):
                changed += _named(module, node)
    return changed


def _named(module: GraphModule, node: Node) -> bool:
    """Whether the node had to be changed."""
    source = node.args[0]
    if not isinstance(source, Node):
        return False
    sizes = source.meta["val"].shape
    asked = _asked(node, len(sizes))
    removed = [axis for axis in asked if isinstance(sizes[axis], int) and sizes[axis] == 1]
    if len(sizes) - len(removed) != node.meta["val"].dim():
        return False  # an open size that the trace has found to be 1
    if not removed:
        node.replace_all_uses_with(source)
        module.graph.erase_node(node)
        return True
    if len(node.args) > 1 and removed == asked:
        return False
    with module.graph.inserting_before(node):
        named = module.graph.call_function(torch.ops.aten.squeeze.dims, (source, removed))
    named.meta = dict(node.meta)
    node.replace_all_uses_with(named)
    module.graph.erase_node(node)
    return True


def _asked(node: Node, rank: int) -> list[int]:
    """The axes that may go: those that the call names, or all."""
    if len(node.args) == 1:
        return list(range(rank))
    axes = node.args[1] if isinstance(node.args[1], list | tuple) else [node.args[1]]
    return sorted({axis % rank for axis in axes if isinstance(axis, int)}) if rank else []


WORKAROUND = Workaround(
    reason="ONNX and OpenVINO refuse to squeeze an axis of another size than 1, where torch does nothing; OpenVINO takes an "
    "open size for 1 (packed features with `squeeze(0)`: Mistral 3), and loses the rank behind a squeeze that names no axes "
    "(the window of WavTokenizer's inverse STFT).",
    upstream="none: https://onnx.ai/onnx/operators/onnx__Squeeze.html says so",
    targets=("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims"),
    apply=name_squeezed,
)
