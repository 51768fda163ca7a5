"""`(k - n % k) % k`, `-n % k` and `n % 0.5` on a dynamic size: the same amount, so that shape algebra can use it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sympy
from torch import SymInt
from torch.utils._sympy.functions import Mod, PythonMod

from ....workarounds import Workaround


def modulo(original: Callable[..., Any]) -> Callable[..., Any]:
    """`SymInt.__mod__` that knows what is missing to the next multiple.

    Fires on the remainder of `k - n % k` and of `-n`, and on that by 1/2, 1/4, ..., which a whole number does not have;
    every other remainder is left as it is. The inner `n % k` is remembered by its expression, to get from the expression
    of `k - n % k` back to `n`.
    """
    remainders: dict[sympy.Expr, SymInt] = {}

    @functools.wraps(original)
    def missing(self: SymInt, other: Any) -> Any:
        if isinstance(other, float) and 0 < other <= 1 and (1 / other).is_integer():
            return 0.0
        if not isinstance(other, int) or isinstance(other, bool) or other <= 1:
            return original(self, other)
        expression = self.node.expr
        size = -self if _is_negative(expression) else _size_behind(self, other, remainders)
        if size is not None:
            return (size + other - 1) // other * other - size
        result = original(self, other)
        if isinstance(result, SymInt):
            remainders[result.node.expr] = self
        return result

    return missing


def _is_negative(expression: sympy.Expr) -> bool:
    """Whether it is written as minus a size, which may be that of an image behind strides: `-((h - 1)//4) - 1`."""
    return all(bool(term.as_coeff_Mul()[0] < 0) for term in sympy.Add.make_args(expression))


def _size_behind(value: SymInt, other: int, remainders: dict[sympy.Expr, SymInt]) -> SymInt | None:
    """`n`, if the value is `other - n % other` of the same trace (another trace uses the same symbol names)."""
    remainder = other - value.node.expr
    if not isinstance(remainder, Mod | PythonMod) or remainder.args[1] != other:
        return None
    size = remainders.get(remainder)
    return size if size is not None and size.node.shape_env is value.node.shape_env else None


WORKAROUND = Workaround(
    reason="Padding amounts written as remainders make sympy slow, and hide that a padded size divides "
    "(window attention of SAM, SAM 2, ViTDet, Florence2; chunked linear attention; Mamba2); by 0.5 the trace fails (InternVL).",
    upstream="none: no issue is known to us",
    targets=("torch:SymInt.__mod__",),
    apply=modulo,
)
