"""Answer a retrace's questions about involved sizes from the trace, instead of proving them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

#: Operations in an expression from which on a proof is not tried. Swin's padded windows have hundreds, and one question
#: takes seconds: its lowering did not end within ten minutes. Sizes of language models have fewer than ten.
INVOLVED = 20

#: What a size that is data (a count of `nonzero`) is taken for. A question is answered where all of these give the same
#: answer: none is 0 or 1, which broadcast; whether the size exceeds a number, or its remainder, has no common answer.
TYPICAL = (2, 3, 64, 97, 4096)


@contextmanager
def quick_guards(shape_env: Any) -> Iterator[None]:
    """While this holds, a question about an involved size is answered at the traced sizes, without a guard.

    The trace has already decided every branch of the model; decompositions only ask again whether shapes fit each other.
    Simple sizes are still proved, so an axis that a decomposition would freeze is still noticed. What nobody can prove is
    answered at typical sizes: the trace has passed there, and what is asked anew is which of two strides is larger, or
    whether a size is negative.
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

    evaluate = _or_at_typical_sizes(shape_env.evaluate_expr, values)
    static, simplify = shape_env._maybe_evaluate_static, shape_env.simplify

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


def _or_at_typical_sizes(evaluate: Any, known: Mapping[sympy.Symbol, sympy.Integer]) -> Any:
    """`evaluate`, which answers at the values of `TYPICAL` where it has no proof and these agree."""

    @functools.wraps(evaluate)
    def either(question: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return evaluate(question, *args, **kwargs)
        except GuardOnDataDependentSymNode:
            free = question.free_symbols
            points = [{s: known.get(s, sympy.Integer(n)) for s in free} for n in TYPICAL]
            answers = {question.xreplace(point) for point in points if _is_possible(question, point)}
            if len(answers) != 1 or not answers <= {sympy.true, sympy.false}:
                raise
            return answers.pop()

    return either


def _is_possible(question: sympy.Basic, point: Mapping[sympy.Symbol, sympy.Integer]) -> bool:
    """Whether no size in the question is negative: of 38 tokens, what lies behind two counts is not there at 64 and 64."""
    sizes = question.args if isinstance(question, sympy.core.relational.Relational) else ()
    return not any(size.xreplace(point).is_negative for size in sizes)
