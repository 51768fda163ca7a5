"""Sizes that were traced as a multiple of a number, where the model takes others in another way.

A model that folds a sequence into chunks pads it first, if it has to: `if length % chunk: ...`. Traced at a multiple, the graph
does not pad and fails at every other length. Traced at another length it pads, and mostly by nothing where nothing is
missing. So it is traced again there; if that graph is wrong at multiples, the first one stays, for multiples only. And where
the caller's size is a multiple and the traced one is not, the graph has to be right at the caller's.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import sympy
import torch.utils._sympy.functions as symbolic

from ..errors import TraceError
from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..prepare.resize import axis_size, resize
from ..quiet import quiet
from .dims import shape_env_of
from .ranges import Trial
from .record import Traced

logger = logging.getLogger(__name__)

_MOST = 1024


def any_remainder(
    traced: Traced, prepared: Prepared, retrace: Callable[[Mapping[str, Any]], Traced]
) -> tuple[Traced, Mapping[str, int]]:
    """A graph that holds at multiples and between them; or the one given, and of what its sizes have to be multiples.

    Args:
        traced: A graph with proved ranges.
        prepared: What was traced. Its model runs here, in eager mode.
        retrace: Traces with other inputs.
    """
    if is_referenced(prepared.model):
        return traced, {}
    passed = {n: step for n, step in _multiples(traced, sympy.Ne).items() if _own(prepared, n) % step == 0}
    if passed and Trial(traced, prepared).agrees(prepared.original) is False:
        traced = retrace(prepared.original)
        return traced, {name: step for name, step in _multiples(traced, sympy.Eq).items() if name in passed}
    steps = _multiples(traced, sympy.Eq)
    sizes = {name: axis_size(prepared.inputs, prepared.axes, name) or 0 for name in steps}
    steps = {name: step for name, step in steps.items() if sizes[name] and sizes[name] % step == 0}
    if not steps:
        return traced, {}
    trial, wrong = Trial(traced, prepared), None
    for step in (1, -1):  # a model may refuse what is longer
        between = resize(prepared.inputs, prepared.axes, {name: max(sizes[name] + step, 1) for name in steps})
        if (verdict := trial.agrees(between)) is not None:
            wrong = between if verdict is False else None
            break
    if wrong is None:
        return traced, {}
    logger.debug("%s: holds for multiples only, %s; tracing between them", prepared.name, steps)
    try:
        with quiet(__package__, logging.ERROR):  # what is wrong with a trace that is not kept concerns nobody
            again = retrace(wrong)
    except TraceError as error:
        logger.debug("%s: cannot be traced between multiples: %s", prepared.name, error)
        return traced, steps
    trial = Trial(again, prepared)
    free = traced.spec.axes.keys() <= again.spec.axes.keys()
    if free and all(trial.agrees(inputs) is not False for inputs in (prepared.original, prepared.inputs)):
        return again, {}
    return traced, steps


def with_multiples(traced: Traced, steps: Mapping[str, int]) -> Traced:
    """The component, whose axes are said to take only these multiples."""
    axes = {
        name: dataclasses.replace(bounds, multiple_of=math.lcm(bounds.multiple_of, steps.get(name, 1)))
        for name, bounds in traced.spec.axes.items()
    }
    return dataclasses.replace(traced, spec=dataclasses.replace(traced.spec, axes=axes))


def _own(prepared: Prepared, name: str) -> int:
    return axis_size(prepared.original, prepared.axes, name) or 0


def _multiples(traced: Traced, relation: type[sympy.Rel]) -> dict[str, int]:
    """Of what number each axis was taken to be a multiple (`Eq`), or none (`Ne`), by axis name."""
    shape_env = shape_env_of(traced.program)
    steps: dict[str, int] = {}
    for guard in shape_env.guards if shape_env is not None else ():
        expression = guard.expr
        if not isinstance(expression, relation) or expression.rhs != 0:
            continue
        for remainder in expression.lhs.atoms(symbolic.Mod, symbolic.PythonMod):
            size, step = remainder.args
            name = traced.symbols.get(str(size))
            if name is not None and step.is_Integer and 1 < int(step) <= _MOST:
                steps[name] = math.lcm(steps.get(name, 1), int(step))
    return steps
