"""Drop what computes nothing. Every later stage walks the graph several times, and a cast in the middle ends a part."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

_aten = torch.ops.aten
_CASTS = {_aten.to.dtype, _aten.to.device, _aten.to.dtype_layout, _aten._to_copy.default, _aten.type_as.default}
_COPIES = {_aten.clone.default, _aten.contiguous.default, _aten.detach.default, _aten.detach_.default}
_ASSERTS = {_aten._assert_tensor_metadata.default}


def apply(program: ExportedProgram) -> int:
    """Remove casts to the same dtype, slices and expands of everything, copies and metadata checks; returns how many."""
    outputs = set(program.graph.output_node().all_input_nodes)
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
        elif _is_identity(node) and not (node in outputs and node.args[0].op == "placeholder"):
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)
            count += 1
    return count


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
    if node.target in (_aten.dropout.default, _aten.feature_dropout.default):
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
