"""Small tensors of a traced graph that depend on no input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.node import map_arg

from ..trace.graph_state import held_tensor, program_inputs

#: A longer one would be a weight; the series that model code computes with are a few numbers.
_LARGEST = 256
#: Ops that a series takes; what is deeper depends on an input somewhere.
_DEEPEST = 32


def constants_of(program: ExportedProgram) -> dict[Node, Any]:
    """The tensors that model code wrote down (`torch.tensor(3)`), by placeholder."""
    return {
        node: held_tensor(program, spec)
        for node, spec in program_inputs(program)
        if spec.kind is InputKind.CONSTANT_TENSOR
    }


def constant_value(node: Node, constants: Mapping[Node, Any]) -> torch.Tensor | None:
    """What a node always is; None if it depends on an input, is written to, or holds more than a few numbers.

    Args:
        node: A node that returns a tensor.
        constants: `constants_of` its program.
    """
    try:
        return _value(node, constants)
    except _Varies:
        return None


class _Varies(Exception):
    """A value that depends on an input, or is not small."""


def _value(node: Node, constants: Mapping[Node, Any], depth: int = 0) -> torch.Tensor:
    """The tensor that a node always is."""
    if depth > _DEEPEST or not _is_small(node.meta.get("val")) or any(_writes(user) for user in node.users):
        raise _Varies
    if node in constants:
        found = constants[node]
    elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
        if torch.Tag.nondeterministic_seeded in node.target.tags or _writes(node):
            raise _Varies
        args, kwargs = map_arg((node.args, node.kwargs), lambda used: _value(used, constants, depth + 1))
        found = node.target(*args, **kwargs)
    else:
        raise _Varies
    if not isinstance(found, torch.Tensor) or found.device.type != "cpu":
        raise _Varies
    return found


def _is_small(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
        return False
    return value.numel() <= _LARGEST


def _writes(node: Node) -> bool:
    """Whether a node may write into what it takes."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target is torch.ops.aten.detach_.default:
        return False
    return bool(node.target._schema.is_mutable)
