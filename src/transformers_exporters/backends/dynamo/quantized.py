"""Products with 8-bit weights in torch's own operators, so that they are quick without a compiler."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...repair.inline import inline, substitute
from .rewritten import rewritten

_LINEAR = torch.ops.aten.linear.default
_DEQUANTIZE = "quantized_decomposed.dequantize_per_channel.default"


def has_quantized_ops(program: ExportedProgram) -> bool:
    """Whether the program needs the operators that torch registers for quantized graphs."""
    return any(_name(node).startswith("quantized_decomposed.") for node in program.graph.nodes)


def with_fast_products(program: ExportedProgram) -> ExportedProgram:
    """Scale the results of products with 8-bit weights in the place of the weights.

    A weight has hundreds of times as many values as one token's result. On one CPU thread the product of one token with
    1536 x 576 values takes 1.3 ms with the weight scaled first and 0.4 ms like this (torch 2.13).

    Returns:
        The program itself where there is nothing to do, else a copy over the same weights.
    """
    fast = {node.name for node in program.graph.nodes if _is_fast(node, program)}
    if not fast:
        return program
    with rewritten(program) as made:
        for node in list(made.graph.nodes):
            if node.name in fast:
                inputs, weight, *bias = node.args
                substitute(node, inline(node, _scaled_product, (inputs, *weight.args[:2], *bias), {}))
                if not weight.users:
                    made.graph.erase_node(weight)
    return made


def _scaled_product(inputs: Any, values: Any, scales: Any, bias: Any = None) -> Any:
    """`inputs: float [..., in]`, `values: int8 [out, in]`, `scales` and `bias: float [out]` -> [..., out]."""
    product = torch.nn.functional.linear(inputs, values.to(inputs.dtype)) * scales.to(inputs.dtype)
    return product if bias is None else product + bias


def _is_fast(node: Node, program: ExportedProgram) -> bool:
    """Whether a node is a product of float inputs with a weight that has one scale a row and only zeros as zero points."""
    if node.target is not _LINEAR:
        return False
    inputs, weight = node.args[:2]
    if _name(weight) != _DEQUANTIZE or _name(inputs).startswith("quantized_decomposed."):
        return False
    assert isinstance(weight, Node)
    zeros: Any = weight.args[2]
    names = {**program.graph_signature.inputs_to_parameters, **program.graph_signature.inputs_to_buffers}
    held = None if zeros is None else program.state_dict.get(names.get(zeros.name, ""))
    return bool(weight.args[3] == 0 and (zeros is None or (held is not None and not held.any())))


def _name(node: Any) -> str:
    return str(getattr(node, "target", ""))
