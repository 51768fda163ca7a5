"""A graph reads its weights; what a model writes into them in forward becomes a value of that call."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

_aten = torch.ops.aten
#: Operators whose result is the memory of their argument, all of it.
_SAME = {_aten.detach.default, _aten.alias.default, _aten.detach_.default}


def read_only_weights(program: ExportedProgram) -> int:
    """Compute with a changed copy where the graph writes a parameter in place.

    RWKV divides the weights of its later layers in its first forward. torch.export keeps the write: a program would divide
    its own weights again at every call.

    Returns:
        How many writes were replaced.
    """
    parameters = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.PARAMETER}
    origins: dict[Node, Node] = {}  # the parameter whose memory, or whose changed copy, a node is
    current: dict[Node, Node] = {}  # the copy of a parameter that holds its value by now
    changed = 0
    for node in list(program.graph.nodes):
        if node.op == "placeholder" and node.name in parameters:
            origins[node] = current[node] = node
            continue
        for source in node.all_input_nodes:
            if source in origins and (value := current[origins[source]]) is not source:
                node.replace_input_with(source, value)
        written = origins.get(node.args[0]) if node.args and isinstance(node.args[0], Node) else None
        if written is None:
            continue
        if node.target in _SAME:
            origins[node] = written
        elif (function := _functional(node.target)) is not None:
            node.target = function
            origins[node], current[written] = written, node
            changed += 1
    if changed:
        program.graph_module.recompile()
    return changed


def _functional(target: Any) -> Any:
    """`aten.div.Tensor` for `aten.div_.Tensor`; None for what writes nothing, or has no such twin."""
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return None
    name = target._schema.name.partition("::")[2]
    twin = getattr(getattr(_aten, name.removesuffix("_"), None), target._overloadname, None)
    return twin if name.endswith("_") and twin is not None and not twin._schema.is_mutable else None
