"""Answer a retrace's questions about involved sizes from the trace, instead of proving them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy

#: Operations in an expression from which on a proof is not tried. Swin's padded windows have hundreds, and one question
#: takes seconds: its lowering did not end within ten minutes. Sizes of language models have fewer than ten.
INVOLVED = 20


@contextmanager
def quick_guards(shape_env: Any) -> Iterator[None]:
    """While this holds, a question about an involved size is answered at the traced sizes, without a guard.

    The trace has already decided every branch of the model; decompositions only ask again whether shapes fit each other.
    Simple sizes are still proved, so an axis that a decomposition would freeze is still noticed.
    """
    if shape_env is None:
        yield
        return
    values = shape_env.backed_var_to_val if hasattr(shape_env, "backed_var_to_val") else shape_env.var_to_val
    involved: dict[sympy.Basic, bool] = {}
    answers: dict[sympy.Basic, sympy.Basic] = {}

    def is_involved(expression: Any) -> bool:
        if not isinstance(expression, sympy.Basic):
            return False
        if expression not in involved:
            known = all(symbol in values for symbol in expression.free_symbols)
            involved[expression] = known and expression.count_ops() >= INVOLVED
        return involved[expression]

    def answer(expression: sympy.Basic) -> sympy.Basic:
        if expression not in answers:
            answers[expression] = expression.xreplace({s: values[s] for s in expression.free_symbols})
        return answers[expression]

    evaluate, static, simplify = shape_env.evaluate_expr, shape_env._maybe_evaluate_static, shape_env.simplify

    @functools.wraps(evaluate)
    def evaluate_expr(orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
        return answer(orig_expr) if is_involved(orig_expr) else evaluate(orig_expr, *args, **kwargs)

    @functools.wraps(static)  # its `cache_clear` is called
    def maybe_evaluate_static(expr: Any, **kwargs: Any) -> Any:
        if is_involved(expr):
            return answer(expr) if kwargs.get("compute_hint") else None
        return static(expr, **kwargs)

    @functools.wraps(simplify)
    def as_it_is(expr: Any, *args: Any, **kwargs: Any) -> Any:
        return expr if is_involved(expr) else simplify(expr, *args, **kwargs)

    replaced = {"evaluate_expr": evaluate_expr, "_maybe_evaluate_static": maybe_evaluate_static, "simplify": as_it_is}
    vars(shape_env).update(replaced)
    try:
        yield
    finally:
        for name in replaced:
            del vars(shape_env)[name]
