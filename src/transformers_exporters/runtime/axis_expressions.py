"""Evaluate the expressions that stand for derived axes, e.g. `2*sequence` or `Max(1, cache + sequence)`, and conditions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

__all__ = ["evaluate", "holds", "multiple"]

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda base, power: _power(base, power),
}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

#: A file says what is computed here, so it must not take long.
_LARGEST_POWER = 8

# What torch's symbolic shapes print for the same operations.
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Max": max,
    "Min": min,
    "max": max,
    "min": min,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": lambda a, b: -(-a // b),
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "PowByNatural": lambda base, power: _power(base, power),
    "ToFloat": float,
    "Abs": abs,
    "Eq": operator.eq,
    "Ne": operator.ne,
}


def evaluate(expression: str, sizes: Mapping[str, int]) -> int | None:
    """The value of an expression of axis names, or None if a name has no size yet or the syntax is not known.

    Known are `+ - * // %`, Max, Min, Mod, FloorDiv, CleanDiv and CeilDiv over names and integers; nothing is executed.
    """
    tree = _parse(expression)
    try:
        return None if tree is None else _value(tree, sizes)
    except (LookupError, TypeError, ZeroDivisionError, RecursionError):
        return None


def holds(condition: str, sizes: Mapping[str, int]) -> bool | None:
    """Whether a comparison of such expressions holds (`height*width<=100`, `Ne(a, b)`); None as for `evaluate`."""
    answer = evaluate(condition, sizes)
    return answer if isinstance(answer, bool) else None


def multiple(expression: str) -> tuple[int, str] | None:
    """The factor and the name of an expression like `2*batch`; None for any other."""
    tree = _parse(expression)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        factor, name = tree.left, tree.right
        if isinstance(factor, ast.Constant) and type(factor.value) is int and isinstance(name, ast.Name):
            return factor.value, name.id
    return None


@lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.expr | None:
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _power(base: int, power: int) -> int:
    if not 0 <= power <= _LARGEST_POWER:
        raise LookupError(f"the power {power}")
    return int(base**power)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """Raises `LookupError` for anything that is not known."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _COMPARISONS[type(node.ops[0])](_value(node.left, sizes), _value(node.comparators[0], sizes))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _FUNCTIONS[node.func.id](*(_value(argument, sizes) for argument in node.args))
    raise LookupError(ast.dump(node))
