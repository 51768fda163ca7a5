"""Reductions keep their axes, which are taken away by an op of its own, for the CPU plugin's sake.

The plugin lets a reduction do the elementwise op that comes after it, too. Where that op has a constant per channel, the
channel is axis 1 of the reduction's result with its axes kept. If they are not kept, and the result has two axes, the
constant belongs to the last one: `(x[2, 32, 4].sum(-1) + bias[32])` adds other numbers, and raises nothing (seen with
openvino 2026.4.1, for sums, means and maxima, of floats and of integers).
"""

from __future__ import annotations

from openvino import Model, Node
from openvino import opset15 as ops


def keep_reduced_axes(model: Model) -> None:
    """Rewrite, in place, every reduction over constant axes that takes them away."""
    for node in model.get_ordered_ops():
        if node.get_type_name().startswith("Reduce") and not node.get_attributes()["keep_dims"]:
            _keep(node)


def _keep(node: Node) -> None:
    axes = node.input_value(1).get_node()
    # To reduce over no axis is no reduction, but to squeeze no axis squeezes all of size 1. Axes that are computed are all
    # the axes: nothing is left that could be a channel.
    if axes.get_type_name() != "Constant" or axes.data.size == 0:
        return
    taking = node.output(0).get_target_inputs()
    node.set_attribute("keep_dims", True)
    node.constructor_validate_and_infer_types()
    squeezed = ops.squeeze(node, axes).output(0)
    for target in taking:
        target.replace_source_output(squeezed)
