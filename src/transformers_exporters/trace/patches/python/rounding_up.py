"""`(k - n % k) % k`, `-n % k` and `n % 0.5` on a dynamic size: the same amount, so that shape algebra can use it.

And `k - n % k` below `if n % k:`, which at a multiple is a whole `k` instead of nothing: the graph runs there as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sympy
from torch import SymInt
from torch.utils._sympy.functions import Mod, PythonMod

from ....workarounds import Workaround


def in_multiples(original: Callable[..., Any]) -> Callable[..., Any]:
    """`SymInt.__mod__` and `SymInt.__rsub__`, which know what is missing to the next multiple."""
    # torch makes both of templates, which give them their own names: that of a reflected operator begins with an r.
    return subtracted(original) if original.__name__.startswith("r") else modulo(original)


def modulo(original: Callable[..., Any]) -> Callable[..., Any]:
    """`SymInt.__mod__` that knows what is missing to the next multiple.

    Fires on the remainder of `k - n % k` and of `-n`, and on that by 1/2, 1/4, ..., which a whole number does not have;
    every other remainder is left as it is. The inner `n % k` is remembered by its expression, to get from the expression
    of `k - n % k` back to `n`.
    """

    @functools.wraps(original)
    def missing(self: SymInt, other: Any) -> Any:
        if isinstance(other, float) and 0 < other <= 1 and (1 / other).is_integer():
            return 0.0
        if not isinstance(other, int) or isinstance(other, bool) or other <= 1:
            return original(self, other)
        expression = self.node.expr
        size = -self if _is_negative(expression) else _size_behind(self, other)
        if size is not None:
            return (size + other - 1) // other * other - size
        result = original(self, other)
        if isinstance(result, SymInt):
            _remainders(self)[result.node.expr] = self
        return result

    return missing


def subtracted(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def missing(self: SymInt, other: Any) -> Any:
        expression = self.node.expr
        if isinstance(expression, Mod | PythonMod) and isinstance(other, int) and expression.args[1] == other:
            size = _remainders(self).get(expression)
            if size is not None and _is_asked(self):
                return (size + other - 1) // other * other - size
        return original(self, other)

    return missing


def _is_asked(remainder: SymInt) -> bool:
    """Whether the running branch is that of sizes with a remainder."""
    return any(guard.expr == sympy.Ne(remainder.node.expr, 0) for guard in remainder.node.shape_env.guards)


def _is_negative(expression: sympy.Expr) -> bool:
    """Whether it is written as minus a size, which may be that of an image behind strides: `-((h - 1)//4) - 1`."""
    return all(bool(term.as_coeff_Mul()[0] < 0) for term in sympy.Add.make_args(expression))


def _size_behind(value: SymInt, other: int) -> SymInt | None:
    """`n`, if the value is `other - n % other`."""
    remainder = other - value.node.expr
    if not isinstance(remainder, Mod | PythonMod) or remainder.args[1] != other:
        return None
    return _remainders(value).get(remainder)


def _remainders(value: SymInt) -> dict[sympy.Expr, SymInt]:
    """`n` by the expression of `n % k`, of the trace that a size belongs to: another one uses the same symbol names."""
    found: dict[sympy.Expr, SymInt] = vars(value.node.shape_env).setdefault(f"{__name__}.remainders", {})
    return found


WORKAROUND = Workaround(
    reason="Padding amounts written as remainders make sympy slow, and hide that a padded size divides "
    "(window attention of SAM, SAM 2, ViTDet, Florence2; chunked linear attention; Mamba2); by 0.5 the trace fails (InternVL). Padding of what has a "
    "remainder adds a whole window where there is none.",
    upstream="none: no issue is known to us",
    targets=("torch:SymInt.__mod__", "torch:SymInt.__rsub__"),
    apply=in_multiples,
)
