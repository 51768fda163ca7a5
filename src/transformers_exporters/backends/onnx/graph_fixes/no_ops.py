"""Take out what changes nothing: `x[:, :, None, :, :]` alone leaves three slices of everything, each a copy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

__all__ = ["apply"]

# torch writes "to the end" as the largest int64; any end past this one is as good.
_TO_THE_END = 2**31 - 1


def apply(graph: ir.Graph) -> int:
    """Remove full slices, `x * 1`, `x / 1`, `x + 0`, `x - 0`, casts to the same dtype, and reshapes to the same shape.

    Does not fire where the result is an output of the graph and its source an input or a weight, nor where the dtype or the
    rank could change.
    """
    changed = 0
    for node in list(graph):
        rule = _RULES.get(node.op_type) if not node.domain else None
        source = rule(node) if rule is not None else None
        if source is None:
            continue
        result = node.outputs[0]
        if result.is_graph_output():
            continue
        if source.shape is None:
            source.shape = result.shape
        ir.convenience.replace_all_uses_with(result, source)
        graph.remove(node, safe=True)
        changed += 1
    return changed


def _numbers(value: ir.Value | None) -> np.ndarray | None:
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    return tensor.numpy() if tensor is not None and tensor.size <= 16 else None


def _full_slice(node: ir.Node) -> ir.Value | None:
    starts, ends = _numbers(node.inputs[1]), _numbers(node.inputs[2])
    steps = _numbers(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] is not None else np.array([1])
    if starts is None or ends is None or steps is None:
        return None
    whole = (starts == 0).all() and (ends >= _TO_THE_END).all() and (steps == 1).all()
    return node.inputs[0] if whole else None


def _neutral(number: float, *, either_side: bool) -> Callable[[ir.Node], ir.Value | None]:
    def rule(node: ir.Node) -> ir.Value | None:
        for position in (1, 0) if either_side else (1,):
            constant, other = node.inputs[position], node.inputs[1 - position]
            values = _numbers(constant)
            if values is None or values.size != 1 or values.item() != number or other is None:
                continue
            if values.ndim == 0 or (other.shape is not None and values.ndim <= len(other.shape)):
                return other
        return None

    return rule


def _same_dtype(node: ir.Node) -> ir.Value | None:
    source = node.inputs[0]
    same = source is not None and source.dtype is not None and source.dtype == node.attributes["to"].as_int()
    return source if same else None


def _same_shape(node: ir.Node) -> ir.Value | None:
    source, result = node.inputs[0], node.outputs[0]
    if source is None or source.shape is None or result.shape is None or len(source.shape) != len(result.shape):
        return None
    named = all(isinstance(size, int) or size.value is not None for size in source.shape)
    same = all(a == b for a, b in zip(source.shape, result.shape, strict=True))
    return source if named and same else None


_RULES: dict[str, Callable[[ir.Node], ir.Value | None]] = {
    "Slice": _full_slice,
    "Mul": _neutral(1, either_side=True),
    "Div": _neutral(1, either_side=False),
    "Add": _neutral(0, either_side=True),
    "Sub": _neutral(0, either_side=False),
    "Cast": _same_dtype,
    "Reshape": _same_shape,
    "Expand": _same_shape,
}
