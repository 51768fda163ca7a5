"""Drop what computes nothing. Every later stage walks the graph several times, and a cast in the middle ends a part."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

_aten = torch.ops.aten
_CASTS = {_aten.to.dtype, _aten.to.device, _aten.to.dtype_layout, _aten._to_copy.default, _aten.type_as.default}
_COPIES = {_aten.clone.default, _aten.contiguous.default, _aten.detach.default, _aten.detach_.default}
_DROPOUTS = {_aten.dropout.default, _aten.feature_dropout.default}
#: Their result may be their input itself, or a piece of it, although their schema does not say so.
_MAY_RETURN_INPUT = {
    *_CASTS - {_aten._to_copy.default},
    *_DROPOUTS,
    _aten.contiguous.default,
    _aten.reshape.default,
    _aten.flatten.using_ints,
    operator.getitem,
}
_ASSERTS = {_aten._assert_tensor_metadata.default}


def apply(program: ExportedProgram) -> int:
    """Remove casts to the same dtype, slices and expands of everything, copies and metadata checks; returns how many."""
    outputs = set(program.graph.output_node().all_input_nodes)
    needed = _needed_copies(program.graph)
    count = 0
    for node in list(program.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is _aten.view.default:
            # A rewrite may change strides, which the runtime does not have: its tensors are dense.
            node.target = _aten.reshape.default
        elif node.target in _ASSERTS:
            program.graph.erase_node(node)
            count += 1
        elif _is_identity(node) and not (node in outputs and node.args[0].op == "placeholder") and node not in needed:
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)
            count += 1
    return count


def _needed_copies(graph: Graph) -> set[Node]:
    """Results with memory of their own that may differ from what they copy: something writes into the one or the other."""
    memory: dict[Node, Node] = {}
    written: set[Node] = set()
    for node in graph.nodes:
        memory[node] = node
        schema = getattr(node.target, "_schema", None)
        arguments = schema.arguments if schema is not None else ()
        for argument, value in zip(arguments, node.args, strict=False):
            if argument.alias_info is not None and isinstance(value, Node):
                memory[node] = memory[value]
                if argument.alias_info.is_write:
                    written.add(memory[value])
        if node.target in _MAY_RETURN_INPUT and isinstance(node.args[0], Node):
            memory[node] = memory[node.args[0]]
    own = [node for node in memory if memory[node] is node]
    return {n for n in own if n in written or any(memory[source] in written for source in n.all_input_nodes)}


def _is_identity(node: Node) -> bool:
    source: Any = node.args[0] if node.args else None
    if not isinstance(source, Node) or not isinstance(source.meta.get("val"), torch.Tensor):
        return False
    before, after = source.meta["val"], node.meta.get("val")
    if not isinstance(after, torch.Tensor) or before.dtype != after.dtype:
        return False
    if node.target in _CASTS:
        return True
    if node.target in _COPIES:
        return [_key(s) for s in before.stride()] == [_key(s) for s in after.stride()]
    if node.target in _DROPOUTS:
        return len(node.args) > 2 and node.args[2] is False
    if node.target is _aten.slice.Tensor:
        start = node.args[2] if len(node.args) > 2 else None
        step = node.args[4] if len(node.args) > 4 else 1
        return bool(start in (None, 0) and step == 1) and _same_shape(before, after)
    if node.target is _aten.expand.default:
        return _same_shape(before, after)
    if node.target in (_aten.mul.Tensor, _aten.mul.Scalar, _aten.div.Tensor):
        return before.is_floating_point() and isinstance(node.args[1], float) and node.args[1] == 1.0
    return False


def _same_shape(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Equal as expressions; sizes that are only equal in the trace do not count, and no guard is added."""
    return before.dim() == after.dim() and all(
        _key(a) == _key(b) for a, b in zip(before.shape, after.shape, strict=True)
    )


def _key(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
