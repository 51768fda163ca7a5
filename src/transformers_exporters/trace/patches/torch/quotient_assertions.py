"""Quotients of values in what a program asserts: written as a division, which torch forgot."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....workarounds import Workaround


def plain_division(original: Callable[..., Any]) -> Callable[..., Any]:
    """`int_truediv` of the class that writes an expression of sizes into a graph."""

    @functools.wraps(original)
    def divide(a: Any, b: Any) -> Any:
        return a / b

    return divide


WORKAROUND = Workaround(
    reason="A comparison of quotients of values (which grid suits an image: `min(width / w, height / h)`) becomes an assertion, "
    "and torch asks the graph's own division for a number: `symbolically traced variables cannot be used as inputs to control "
    "flow` (LLaVA-NeXT, LLaVA-OneVision and others that choose a resolution).",
    upstream="none: PythonReferenceAnalysis lacks int_truediv (torch 2.13); no issue is known to us",
    targets=("torch.utils._sympy.reference:PythonReferenceAnalysis.int_truediv",),
    apply=plain_division,
)
