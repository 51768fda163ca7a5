"""Removes ops that change nothing in an exported graph: layout, device, autograd and evaluation-mode dropout."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

_aten = torch.ops.aten

_SAME = frozenset(
    {
        _aten.contiguous.default,
        _aten.clone.default,
        _aten.detach.default,
        _aten.detach_.default,
        _aten.alias.default,
        _aten.lift_fresh_copy.default,
        _aten.lift_fresh.default,
        _aten.positive.default,
        _aten.resolve_conj.default,
        _aten.resolve_neg.default,
    }
)
_DROPOUT = frozenset(
    {
        _aten.dropout.default,
        _aten.dropout_.default,
        _aten.feature_dropout.default,
        _aten.alpha_dropout.default,
        _aten.feature_alpha_dropout.default,
    }
)


def drop_identities(graph: Graph) -> int:
    """Let the users of every identity in a functional graph use its input; returns how many there were."""
    count = 0
    for node in list(graph.nodes):
        if node.op == "call_function" and _is_identity(node):
            source = node.args[0]
            assert isinstance(source, Node)
            node.replace_all_uses_with(source)
            graph.erase_node(node)
            count += 1
    return count


def _is_identity(node: Node) -> bool:
    if not node.args or not isinstance(node.args[0], Node):
        return False
    if node.target in _SAME:
        return True
    if node.target in _DROPOUT:
        return node.args[2] is False
    if getattr(node.target, "_overloadpacket", None) in (_aten.to, _aten._to_copy, _aten.type_as):
        before, after = node.args[0].meta.get("val"), node.meta.get("val")
        return isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and before.dtype == after.dtype
    return False
