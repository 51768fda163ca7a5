"""Keep a float16 model's residual stream in float32.

The sum outgrows 65504, while what is added to it and what is read from it does not.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from ....workarounds import Workaround

_ADD = torch.ops.aten.add.Tensor
_ASSERT = torch.ops.aten._assert_tensor_metadata.default
_TO = (torch.ops.aten.to.dtype, torch.ops.aten._to_copy.default)
_TYPE_AS = torch.ops.aten.type_as.default


def widen_residuals(program: ExportedProgram) -> int:
    """Compute in float32 every float16 sum that only float32 casts and other such sums read.

    Root-mean-square norms cast the stream to float32 before they square it, so the stream itself is never needed in
    float16. What is added is taken before its cast to float16, where it was computed in float32. Does not fire where a sum
    is an output of the graph, or a float16 op reads it.

    Returns:
        How many sums were widened.
    """
    graph = program.graph
    sums = _stream(graph)
    if not sums:
        return 0
    for node in [node for node in graph.nodes if node in sums]:  # in the graph's order: operands before their readers
        with graph.inserting_before(node):
            node.args = tuple(_wide(graph, operand, sums) for operand in node.args)
        node.meta["val"] = node.meta["val"].to(torch.float32)
        for user in list(node.users):
            if user.target in _TO:
                user.replace_all_uses_with(node)
                graph.erase_node(user)
            elif user.target is _TYPE_AS:  # `branch.type_as(stream)` still means float16
                user.target, user.args = torch.ops.aten.to.dtype, (user.args[0], torch.float16)
            elif user.target is _ASSERT:
                graph.erase_node(user)
    return len(sums)


def _stream(graph: Graph) -> set[Node]:
    """The largest set of float16 sums of two tensors whose readers are float32 casts and sums of the set."""
    sums = {node for node in graph.nodes if _is_sum(node)}
    while True:
        kept = {node for node in sums if all(_is_harmless(node, user) or user in sums for user in _readers(node))}
        if kept == sums:
            return {node for node in sums if _readers(node)}
        sums = kept


def _readers(node: Node) -> list[Node]:
    return [user for user in node.users if user.target is not _ASSERT]


def _is_sum(node: Node) -> bool:
    if node.op != "call_function" or node.target is not _ADD or node.kwargs:
        return False
    return all(isinstance(item, Node) and _dtype(item) == torch.float16 for item in (*node.args, node))


def _is_harmless(node: Node, user: Node) -> bool:
    """Whether `user` casts `node` to float32, or reads nothing but its dtype."""
    if user.target is _TYPE_AS:
        return user.args[0] is not node
    return user.op == "call_function" and user.target in _TO and _dtype(user) == torch.float32


def _dtype(node: Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _wide(graph: Graph, operand: Node, sums: set[Node]) -> Node:
    if operand in sums:
        return operand
    source = operand.args[0] if operand.op == "call_function" and operand.target in (*_TO, _TYPE_AS) else None
    if isinstance(source, Node) and _dtype(source) == torch.float32:
        return source
    cast = graph.call_function(torch.ops.aten.to.dtype, (operand, torch.float32))
    cast.meta = {**operand.meta, "val": operand.meta["val"].to(torch.float32)}
    return cast


WORKAROUND = Workaround(
    reason="The residual stream of a float16 model overflows to infinity in an Add; seen in Gemma 3 and EmbeddingGemma.",
    upstream="https://github.com/microsoft/onnxruntime/issues/26732",
    targets=("aten.add.Tensor",),
    apply=widen_residuals,
)
