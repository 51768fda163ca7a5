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
    """The name of a node's translation: `complex.<op name>` where a complex tensor goes in or comes out.

    A complex tensor is a tensor of reals with a last axis of size 2, so a rule for real tensors would silently miscount
    its axes; the frontend must not find one.
    """
    touched = [node.meta.get("val"), *(source.meta.get("val") for source in node.all_input_nodes)]
    flat = [v for value in touched for v in (value if isinstance(value, list | tuple) else [value])]
    is_complex = any(isinstance(v, torch.Tensor) and v.is_complex() for v in flat)
    return f"complex.{op_name(node)}" if is_complex else _SYNONYMS.get(op_name(node), op_name(node))
