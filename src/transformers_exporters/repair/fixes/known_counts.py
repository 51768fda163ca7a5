"""A number read from a tensor that the trace knows to be the size of an input: that size."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch import SymInt
from torch.export import ExportedProgram
from torch.fx import Node

from ...workarounds import Workaround

_ITEMS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)


def read_sizes(program: ExportedProgram) -> int:
    """Read the size of the input instead; returns how many numbers there were."""
    graph, changed = program.graph, 0
    placeholders = graph.find_nodes(op="placeholder")
    found: dict[sympy.Symbol, Node] = {}
    for item in [node for target in _ITEMS for node in graph.find_nodes(op="call_function", target=target)]:
        value = item.meta["val"]
        if not isinstance(value, SymInt) or not item.users:
            continue
        symbol = value.node.expr
        if symbol not in found and (place := _place(symbol, placeholders)) is not None:
            with graph.inserting_after(placeholders[-1]):
                found[symbol] = graph.call_function(torch.ops.aten.sym_size.int, place)
            found[symbol].meta = {"val": value, "stack_trace": item.meta.get("stack_trace")}
        if symbol in found:
            item.replace_all_uses_with(found[symbol])
            changed += 1
    if changed:
        graph.eliminate_dead_code()
        program.graph_module.recompile()
    return changed


def _place(symbol: Any, placeholders: list[Node]) -> tuple[Node, int] | None:
    """The input and the axis that have this size; `symbol` is no symbol of an input where none has."""
    for node in placeholders:
        value = node.meta["val"]
        for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, SymInt) and size.node.expr == symbol:
                return node, axis
    return None


WORKAROUND = Workaround(
    reason="Adding a tensor of as many rows as a sum of its values says to one of an input's rows tells the trace that the two are "
    "equal. Passes that run the graph again forget it, and take the number for one of any size, for which ExecuTorch "
    "cannot plan memory (the patches of Kimi K2.5's images).",
    upstream="none: a replaced unbacked symbol has a binding no more",
    targets=("aten.item.default", "aten._local_scalar_dense.default"),
    apply=read_sizes,
)
