"""Literal arguments as constants, and the types of arguments and nodes in the frontend's terms."""

from __future__ import annotations

from typing import Any

import torch
from openvino import OVAny, PartialShape, Shape, Type, op
from openvino.frontend.pytorch.py_pytorch_frontend import _Type as DecoderType

from ..dtypes import OV_TYPES


def constant_of(value: Any) -> op.Constant | None:
    """A literal as a constant; None for what the frontend is told in another way, or not at all."""
    if isinstance(value, bool):
        return op.Constant(Type.boolean, Shape([]), [value])
    if isinstance(value, int):
        return op.Constant(Type.i64, Shape([]), [value])
    if isinstance(value, float):
        return op.Constant(Type.f32, Shape([]), [value])
    if isinstance(value, str):
        return op.Constant(Type.u8, Shape([len(value.encode())]), list(value.encode()))
    if isinstance(value, torch.dtype):
        return None
    if isinstance(value, list | tuple):
        if not value:
            return op.Constant(Type.i32, Shape([0]), [])
        kind = Type.boolean if isinstance(value[0], bool) else Type.i64 if isinstance(value[0], int) else Type.f32
        return op.Constant(kind, Shape([len(value)]), list(value))
    return None


def argument_type(argument: Any) -> OVAny:
    """The type of an argument: of what a node computes, or of a literal."""
    if isinstance(argument, torch.fx.Node):
        return element_type(argument)
    if isinstance(argument, bool):
        return OVAny(DecoderType.PyScalar(OVAny(Type.boolean)))
    if isinstance(argument, int):
        return OVAny(DecoderType.PyScalar(OVAny(Type.i64)))
    if isinstance(argument, float):
        return OVAny(DecoderType.PyScalar(OVAny(Type.f32)))
    if isinstance(argument, list | tuple):
        return OVAny(DecoderType.List(argument_type(argument[0]) if argument else OVAny(Type.i32)))
    return OVAny(Type.dynamic)


def element_type(node: torch.fx.Node) -> OVAny:
    """The element type of the tensor, or the kind of the number, that a node was traced to compute."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return OVAny(OV_TYPES[value.dtype]) if value.dtype in OV_TYPES else OVAny(Type.dynamic)
    if isinstance(value, torch.SymBool | bool):
        return OVAny(DecoderType.PyScalar(OVAny(Type.boolean)))
    if isinstance(value, torch.SymInt | int):
        return OVAny(DecoderType.PyScalar(OVAny(Type.i64)))
    if isinstance(value, torch.SymFloat | float):
        return OVAny(DecoderType.PyScalar(OVAny(Type.f32)))
    return OVAny(Type.dynamic)


def rank_only(argument: Any) -> PartialShape:
    """The rank of the tensor that a node computes; its sizes stay open."""
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    return PartialShape([-1] * value.dim()) if isinstance(value, torch.Tensor) else PartialShape.dynamic()
