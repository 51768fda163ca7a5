"""What the frontend and our translations call a node's op."""

from __future__ import annotations

from types import FunctionType

import torch

# Ops that the frontend knows under another op's name, with the same arguments.
_SYNONYMS = {
    "aten.reshape.default": "aten.view.default",
    "aten.__and__.Tensor": "aten.bitwise_and.Tensor",
    "aten.__or__.Tensor": "aten.bitwise_or.Tensor",
    "aten.__xor__.Tensor": "aten.bitwise_xor.Tensor",
    "aten.clip.default": "aten.clamp.default",
    "aten.concat.default": "aten.cat.default",
    "aten.concatenate.default": "aten.cat.default",
    "aten.absolute.default": "aten.abs.default",
    "aten.true_divide.Tensor": "aten.div.Tensor",
    "aten.multiply.Tensor": "aten.mul.Tensor",
    "aten.subtract.Tensor": "aten.sub.Tensor",
    "aten.swapaxes.default": "aten.transpose.int",
    "aten.swapdims.default": "aten.transpose.int",
    "aten.special_expm1.default": "aten.expm1.default",
    "aten.greater.Tensor": "aten.gt.Tensor",
    "aten.less.Tensor": "aten.lt.Tensor",
}


def op_name(node: torch.fx.Node) -> str:
    """`aten.add.Tensor`, `<built-in function add>`, `torch.sym_max`."""
    if isinstance(node.target, FunctionType):
        return f"{node.target.__module__}.{node.target.__name__}"
    return str(node.target)


def lookup_name(node: torch.fx.Node) -> str:
    """The name under which a node's rule is found, the frontend's or ours."""
    return _SYNONYMS.get(op_name(node), op_name(node))
