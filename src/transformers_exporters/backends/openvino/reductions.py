"""Keep the CPU plugin from computing what comes after a reduction in the reduction.

The plugin lets a reduction apply the elementwise ops with a constant that follow it, also through reshapes. For a tensor of
three axes (openvino 2026.4.1) it then applies a constant per channel along another axis, to floats and to integers, and to
integers also a single number to some rows only. Nothing raises: `x[2, 32, 4].sum(-1) + bias[32]` was wrong in every number,
`x[6, 4, 3].sum(-1) * 4`, of integers, in half of them.
"""

from __future__ import annotations

import numpy as np
from openvino import Model, Node, Output, Type
from openvino import opset15 as ops

from .call import constant

_INTEGERS = (Type.i32, Type.i64)
_LOGICAL = ("ReduceLogicalAnd", "ReduceLogicalOr")
_RESHAPES = ("Squeeze", "Unsqueeze", "Reshape", "Transpose")
_ELEMENTWISE = ("Add", "Subtract", "Multiply", "Divide", "Power", "PRelu", "Maximum", "Minimum", "SquaredDifference")
#: Whatever their other inputs are: those of a norm without weights are made of its input's shape.
_OF_CHANNELS = ("BatchNormInference", "FakeQuantize")
# The plugin fuses nothing into a reduction of more axes than five.
_UNFUSED_RANK = 6


def separate_reductions(model: Model) -> None:
    """Rewrite, in place, every reduction that the plugin would compute wrongly together with what follows it.

    Args:
        model: With the ports of its spec, so that ranks are known.
    """
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if not kind.startswith("Reduce") or kind in _LOGICAL:
            continue
        rank = node.input_value(0).get_partial_shape().rank
        length = rank.get_length() if rank.is_static else 3
        if length < 3:
            continue
        if node.output(0).get_element_type() in _INTEGERS:
            _stop(node)
        elif length == 3 and _meets_channels(node.output(0)):
            _lift(node)


def _stop(node: Node) -> None:
    """Let an op follow that changes no integer and that the plugin does not fuse."""
    result = node.output(0)
    targets = result.get_target_inputs()
    _replace(node, targets, ops.bitwise_and(result, constant(-1, result.get_element_type())).output(0))


def _lift(node: Node) -> None:
    """Reduce the same numbers under leading axes of size 1."""
    axes = node.input_value(1).get_node()
    if axes.get_type_name() != "Constant" or axes.data.size == 0:
        return
    targets = node.output(0).get_target_inputs()
    added = list(range(_UNFUSED_RANK - 3))
    reduced = [int(axis) % 3 + len(added) for axis in np.atleast_1d(axes.data)]
    dropped = added if node.get_attributes()["keep_dims"] else added + reduced
    node.input(0).replace_source_output(ops.unsqueeze(node.input_value(0), constant(added, Type.i64)).output(0))
    node.input(1).replace_source_output(constant(reduced, Type.i64))
    node.set_attribute("keep_dims", True)
    node.constructor_validate_and_infer_types()
    _replace(node, targets, ops.squeeze(node, constant(dropped, Type.i64)).output(0))


def _replace(node: Node, targets: set[object], replacement: Output) -> None:
    """Let what took a node's output take another, which inherits its names: a model's output is found by them."""
    names = node.output(0).get_tensor().get_names()
    node.output(0).get_tensor().set_names(set())
    replacement.get_tensor().set_names(names)
    for target in targets:
        target.replace_source_output(replacement)  # type: ignore[attr-defined]


def _meets_channels(value: Output) -> bool:
    """Whether elementwise ops and reshapes lead from a tensor to a constant of more than one number."""
    for target in value.get_target_inputs():
        node = target.get_node()
        kind = node.get_type_name()
        others = [node.input_value(i) for i in range(node.get_input_size()) if i != target.get_index()]
        if kind in _OF_CHANNELS:
            return True
        if kind in _ELEMENTWISE:
            if not all(_is_constant(other) for other in others):
                continue
            if any(_count(other) != 1 for other in others):
                return True
        elif target.get_index() > 0 if kind in _RESHAPES else others:
            continue
        if len(node.outputs()) == 1 and _meets_channels(node.output(0)):
            return True
    return False


def _count(value: Output) -> int | None:
    """How many numbers a tensor has, if that is known."""
    shape = value.get_partial_shape()
    return int(np.prod(list(shape.to_shape()), dtype=np.int64)) if shape.is_static else None


def _is_constant(value: Output) -> bool:
    node = value.get_node()
    if node.get_type_name() == "Constant":
        return True
    sources = node.input_values()
    return bool(sources) and all(_is_constant(source) for source in sources)
