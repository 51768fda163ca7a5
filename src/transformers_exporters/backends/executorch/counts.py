"""How large a size can be that is data: a count of places is at most the number of places."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._sympy.symbol import SymT, symbol_is_type

_aten = torch.ops.aten
#: `where` with a condition alone gives the places, too.
_OF_ARGUMENT = {
    _aten.nonzero.default: 0,
    _aten.argwhere.default: 0,
    _aten.nonzero_numpy.default: 0,
    _aten.where.default: 0,
    _aten.masked_select.default: 1,
}


def counts_of(program: ExportedProgram) -> dict[sympy.Symbol, sympy.Expr]:
    """The largest value of each size that is data, in other sizes.

    A size that counts where a mask holds is at most the mask's; what is taken from the top is at most what there is.
    """
    found: dict[sympy.Symbol, sympy.Expr] = {}
    for node in program.graph.nodes:
        if node.target is _aten.topk.default:
            found |= _taken(node)
        mask = _mask(node)
        if mask is None:
            continue
        results = pytree.tree_leaves(node.meta["val"])
        sizes = [size.node.expr for each in results for size in each.shape if isinstance(size, torch.SymInt)]
        for symbol in sizes:
            if _is_data(symbol) and symbol not in found and not _of(mask).has(symbol):
                found[symbol] = _of(mask).xreplace(found)
    for node in program.graph.nodes:
        for old, new in node.meta.get("same_sizes", {}).items():
            if new in found:
                found.setdefault(old, found[new])
    return found


def _taken(node: Node) -> dict[sympy.Symbol, sympy.Expr]:
    """The number that `topk` takes, if it is data: at most the size of the axis."""
    number = node.args[1].meta["val"] if isinstance(node.args[1], Node) else node.args[1]
    dim = int(node.args[2]) if len(node.args) > 2 else int(node.kwargs.get("dim", -1))
    size = node.args[0].meta["val"].shape[dim]
    symbol = number.node.expr if isinstance(number, torch.SymInt) else None
    if not _is_data(symbol):
        return {}
    return {symbol: size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)}


def _is_data(size: sympy.Expr | None) -> bool:
    """Whether a size is a number that data decides; rows that are picked by a mask have the sizes of an input, too."""
    return isinstance(size, sympy.Symbol) and symbol_is_type(size, SymT.UNBACKED_INT)


def _mask(node: Node) -> torch.Tensor | None:
    """What a node counts the places of; None if it counts nothing."""
    source: Any = None
    if node.target in _OF_ARGUMENT:
        source = node.args[_OF_ARGUMENT[node.target]]
    elif node.target is _aten.index.Tensor:
        masks = [index for index in node.args[1] if index is not None and index.meta["val"].dtype == torch.bool]
        source = masks[0] if len(masks) == 1 else None
    return source.meta["val"] if source is not None else None


def _of(mask: torch.Tensor) -> sympy.Expr:
    return math.prod(
        (size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size) for size in mask.shape),
        start=sympy.Integer(1),
    )
