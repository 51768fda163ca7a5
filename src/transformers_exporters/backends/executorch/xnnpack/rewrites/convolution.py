"""1-D convolutions as 2-D ones of height 1, with the views that add and drop the axis outside XNNPACK.

executorch's own pass puts them inside, as reshapes, and XNNPACK's reshape infers one size only: a convolution over a
batch and a length that are both dynamic cannot be serialized. ExecuTorch's views outside cost nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from .....trace.graph_state import program_inputs
from ...insertion import Inserter, replace
from ...weights import add_weight
from ..ops import is_plain_float

_aten = torch.ops.aten
_TWO_D = {_aten.conv1d.default: _aten.conv2d.default, _aten.conv_transpose1d.default: _aten.conv_transpose2d.input}


def apply(program: ExportedProgram) -> int:
    """Rewrite `conv1d` and `conv_transpose1d` whose weight is a parameter; returns how many."""
    parameters = program.graph_signature.inputs_to_parameters
    count = 0
    for op, wide in _TWO_D.items():
        for node in program.graph.find_nodes(op="call_function", target=op):
            source, weight = node.args[0], node.args[1]
            if weight.name not in parameters or not is_plain_float(source) or source.meta["val"].dim() != 3:
                continue
            insert = Inserter(node)
            image = insert.call(_aten.unsqueeze.default, source, 2)
            rest = _arguments(op, node)
            result = insert.call(wide, image, _widened(program, parameters[weight.name]), *rest)
            replace(node, insert.call(_aten.squeeze.dim, result, 2))
            count += 1
    return count


def _arguments(op: Any, node: Node) -> list[Any]:
    """The other arguments, with the value of the new axis in front of each pair."""
    rest = []
    for argument, value in zip(op._schema.arguments[2:], node.args[2:], strict=False):
        if argument.name in ("stride", "padding", "output_padding", "dilation"):
            values = [value] if isinstance(value, int) else list(value)
            rest.append([0 if "padding" in argument.name else 1, *values])
        else:
            rest.append(value)
    return rest


def _widened(program: ExportedProgram, name: str) -> Node:
    """The weight with the new axis, as a parameter over the same memory."""
    wide_name = f"{name}_of_height_1"
    for node, spec in program_inputs(program):
        if spec.target == wide_name:
            return node
    return add_weight(program, wide_name, program.state_dict[name].detach().unsqueeze(2))
