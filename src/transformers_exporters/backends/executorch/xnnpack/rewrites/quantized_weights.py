"""Add the bias of a product with an 8-bit weight after the product.

XNNPACK's kernel for float inputs and 8-bit weights multiplies the bias with the weight's scale, so that hardly anything of
it is left (executorch 1.5.1, seen on x86 with AVX-512: a bias of 3 came out as 0.004).
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...insertion import Inserter, replace
from ..ops import has_quantized_weight_only

_aten = torch.ops.aten


def apply(program: ExportedProgram) -> int:
    """Split such products from their biases; returns how many."""
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_aten.linear.default):
        inputs, weight, bias = (*node.args, None)[:3]
        if isinstance(bias, Node) and has_quantized_weight_only(node):
            insert = Inserter(node)
            product = insert.call(_aten.linear.default, inputs, weight)
            replace(node, insert.call(_aten.add.Tensor, product, bias))
            count += 1
    return count
