"""What a size that is data was for the traced sample, where the inputs alone decide it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg


def sample_counts(program: ExportedProgram, inputs: Mapping[str, torch.Tensor]) -> dict[sympy.Symbol, int]:
    """The value of each number that the graph takes out of a tensor which it computes without weights.

    The number of patches in a batch of images is the sum of a grid, and a trace does not say what the sum was.

    Args:
        program: The traced graph.
        inputs: The traced sample, by placeholder.
    """
    values: dict[Node, Any] = {}
    found: dict[sympy.Symbol, int] = {}
    for node in _needed(program, inputs):
        if node.op == "placeholder":
            values[node] = inputs[node.name]
            continue
        args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
        with torch.no_grad():
            values[node] = node.target(*args, **kwargs)
        if _is_number(node):
            found[node.meta["val"].node.expr] = int(values[node])
    return found


def _needed(program: ExportedProgram, inputs: Mapping[str, torch.Tensor]) -> list[Node]:
    """The nodes behind such numbers, in order, the numbers among them."""
    computed: set[Node] = set()
    for node in program.graph.nodes:
        if node.op == "placeholder":
            known = node.name in inputs
        else:
            known = node.op == "call_function" and computed.issuperset(node.all_input_nodes) and _repeats(node.target)
        if known:
            computed.add(node)
    wanted = [node for node in computed if _is_number(node)]
    needed: set[Node] = set()
    while wanted:
        node = wanted.pop()
        if node not in needed:
            needed.add(node)
            wanted += node.all_input_nodes
    return [node for node in program.graph.nodes if node in needed]


def _is_number(node: Node) -> bool:
    value = node.meta.get("val")
    return (
        node.target in (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
        and isinstance(value, torch.SymInt)
        and isinstance(value.node.expr, sympy.Symbol)
    )


def _repeats(target: Any) -> bool:
    """Whether an operator gives the same again and writes into nothing."""
    if not isinstance(target, torch._ops.OpOverload):
        return not isinstance(target, torch._ops.HigherOrderOperator)
    return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags
