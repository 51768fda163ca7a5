"""Loops over the experts that are hit, which may run over all of them.

    hit = (mask.sum((-1, -2)) > 0).nonzero()
    for expert in hit:
        slot, token = torch.where(mask[expert].squeeze(0))
        out.index_add_(0, token, ...)

An expert that is not hit has no token, and writes to no place.
"""

from __future__ import annotations

import ast
import functools
import re

from .neutral import FUNCTIONS, is_neutral, name_of, names_in, tree_of


@functools.lru_cache(maxsize=4096)
def mask_of_loop(file: str, line: int) -> str | None:
    """The name of the mask whose first axis a loop on this line may run over; None for any other loop."""
    tree = tree_of(file)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)] if tree else []
    for function in functions:
        for loop in ast.walk(function):
            if isinstance(loop, ast.For) and loop.iter.lineno == line and (mask := _mask_of(loop, function)):
                return mask
    return None


def _mask_of(loop: ast.For, function: ast.AST) -> str | None:
    mask, hits, index = None, name_of(loop.iter), name_of(loop.target)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and hits is not None and name_of(node.targets[0]) == hits:
            if mask is not None:
                return None  # another one by now
            mask = _summed(node.value)
    if mask is None or index is None or loop.orelse:
        return None
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and _selects(statement.value, mask, index):
            places = names_in(statement.targets[0])
            return mask if is_neutral(loop.body, places, function) else None
    return None


def _summed(hits: ast.expr) -> str | None:
    """The mask in `(mask.sum((-1, -2)) > 0).nonzero()`, however it is written."""
    if "nonzero" not in ast.unparse(hits):
        return None
    sums = [node for node in ast.walk(hits) if isinstance(node, ast.Call) and _called(node) in ("sum", "any")]
    if (
        len(sums) != 1
        or not isinstance(sums[0].func, ast.Attribute)
        or names_in(hits) - {"torch"} != names_in(sums[0].func)
    ):
        return None
    axes = [*sums[0].args, *(word.value for word in sums[0].keywords)]
    if len(axes) != 1 or re.sub(r"[^-\d,]", "", ast.unparse(axes[0])) not in ("-1,-2", "-2,-1", "1,2"):
        return None
    return name_of(sums[0].func.value)


def _selects(value: ast.expr, mask: str, index: str) -> bool:
    """`torch.where(mask[index])`, with a `squeeze` or without."""
    if not isinstance(value, ast.Call) or _called(value) not in ("where", "nonzero"):
        return False
    found = [node for node in ast.walk(value) if isinstance(node, ast.Subscript)]
    others = {node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)}
    if len(found) != 1 or len(value.args) > 1 or not others <= {"where", "nonzero", "squeeze"}:
        return False
    return name_of(found[0].value) == mask and name_of(found[0].slice) == index


def _called(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else None
