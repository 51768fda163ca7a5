"""The shared normal form: every traced graph is rewritten until only core ops are left, and refused if that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ..errors import LoweringError
from .core_ops import CORE_OPS
from .expand import expand
from .source_line import source_line

# A decomposition consists of ops that may need one in turn; nothing was seen to need more than four steps.
_STEPS = 12


def to_normal_form(program: ExportedProgram, component: str, own: Sequence[str]) -> int:
    """Rewrite a graph, in place, to core ops, and to those that its backend takes besides.

    Args:
        program: The graph. In-place ops stay; their functional twins have to be core.
        component: Its name, for the error.
        own: Patterns of further ops that may stay where they have no decomposition (`"aten.rand*"`); an op that is named
            in full stays whole.

    Returns:
        How many nodes were rewritten.

    Raises:
        LoweringError: If an op is left that is neither; names it and the model source line.
    """
    count = 0
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            count += _rewrite(module, component, own)
    return count


def _rewrite(module: GraphModule, component: str, own: Sequence[str]) -> int:
    count = 0
    for _ in range(_STEPS):
        names = {str(node.target) for node in _outside(module)} - set(own)
        changed = expand(module, names) if names else 0
        count += changed
        if not changed:
            break
    for left in _outside(module):
        if not any(fnmatchcase(str(left.target), pattern) for pattern in own):
            raise LoweringError(
                f"{component!r} needs {left.target}, which is outside the ops that every backend lowers and has no "
                f"decomposition (at {source_line(left)}); change the model's code, or add a rule to repair/decompositions."
            )
    if count:
        module.recompile()
    return count


def _outside(module: GraphModule) -> Iterator[Node]:
    for node in module.graph.nodes:
        if node.op == "call_function" and not _is_core(node.target):
            yield node


def _is_core(target: Any) -> bool:
    """Whether an op or its functional twin is core; arithmetic on sizes and control flow always are."""
    if isinstance(target, FunctionType | BuiltinFunctionType | torch._ops.HigherOrderOperator):
        return True
    packet, _, overload = str(target).rpartition(".")
    twin = packet.removesuffix("_")
    return str(target) in CORE_OPS or f"{twin}.{overload}" in CORE_OPS
