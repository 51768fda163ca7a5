"""A number that is computed from sizes goes through the overload for tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...workarounds import Workaround
from ..inline import inline

_aten = torch.ops.aten


def take_tensor_overloads(program: ExportedProgram) -> int:
    """Call `mul.Tensor` with a tensor of no axes instead of `mul.Scalar`, and the like, where the scalar is a node."""
    changed = 0
    for node in program.graph.nodes:
        if len(node.args) < 2 or not all(isinstance(arg, Node) for arg in node.args[:2]):
            continue
        tensor, number = node.args[0].meta.get("val"), node.args[1].meta.get("val")
        if not _takes_number(node.target) and not _promotes(node.target, tensor, number):
            continue
        kind = torch.get_default_dtype() if isinstance(number, torch.SymFloat | float) else torch.int64
        dtype = torch.result_type(tensor, torch.empty((), dtype=kind))
        made = inline(node, _aten.scalar_tensor.default, (node.args[1],), {"dtype": dtype})
        node.target, node.args = node.target._overloadpacket.Tensor, (node.args[0], made, *node.args[2:])
        changed += 1
    return changed


def _promotes(target: Any, tensor: Any, number: Any) -> bool:
    """Whether whole numbers meet a fraction of sizes, which torch.onnx makes floats of by way of the `.Scalar` overload."""
    if not isinstance(target, torch._ops.OpOverload) or target._overloadname != "Tensor":
        return False
    if not isinstance(number, torch.SymFloat) or not isinstance(tensor, torch.Tensor):
        return False
    return not tensor.is_floating_point() and not tensor.is_complex()


def _takes_number(target: Any) -> bool:
    """Whether an op's second argument is a number for which it has a twin that takes a tensor."""
    if not isinstance(target, torch._ops.OpOverload) or target._overloadname != "Scalar":
        return False
    return "Tensor" in target._overloadpacket.overloads() and str(target._schema.arguments[1].type) == "number"


WORKAROUND = Workaround(
    reason="onnxscript's translations of the `.Scalar` overloads take Python numbers only, those of `.Tensor` take either; seen in "
    "EfficientLoFTR, in DeepSeek-OCR 2 and in Fourier transforms over a dynamic axis.",
    upstream="none: no report found; onnxscript 0.7.2, float() of a SymbolicTensor.",
    targets=("aten.mul.Scalar", "aten.remainder.Scalar"),
    apply=take_tensor_overloads,
)
