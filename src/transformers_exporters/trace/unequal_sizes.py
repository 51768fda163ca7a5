"""Sizes that came out equal, where the model has more to do if they do not.

An image whose feature map is no multiple of the patches is resized first: `if new_width != width: features = interpolate(...)`.
Traced where they are equal, the graph does not resize and is right around the traced size only. Traced where they are unequal
it resizes, and mostly to the very same size where nothing is missing. So it is traced again there, and that graph is kept if it
is right at the sizes of the first one, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import TraceError
from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..prepare.resize import axis_sizes, resize
from ..quiet import quiet
from .comparisons import Decision, decisions_of
from .ranges import Trial
from .record import Traced

logger = logging.getLogger(__name__)

#: So far beyond the traced size, an unequal one is looked for.
_FAR = 256


def where_unequal(traced: Traced, prepared: Prepared, retrace: Callable[[Mapping[str, Any]], Traced]) -> Traced:
    """A graph that holds where sizes are equal and where they are not, if there is one; else the one given.

    Args:
        traced: A graph with proved ranges.
        prepared: What was traced. Its model runs here, in eager mode.
        retrace: Traces with other inputs.
    """
    if is_referenced(prepared.model) or "cache" in traced.spec.axes:
        return traced
    trial = Trial(traced, prepared)
    base = axis_sizes(prepared.inputs, trial.axes, traced.spec.axes)
    equal = [each for each in decisions_of(traced) if each.text.startswith("Eq(")]
    sizes = _unequal(equal, base)
    if not sizes:
        return traced
    unequal = resize(prepared.inputs, trial.axes, sizes)
    if trial.agrees(unequal) is not False:  # the model refuses these, or the graph does not depend on it
        return traced
    logger.debug("%s: holds only where sizes are equal; tracing at %s", prepared.name, sizes)
    try:
        with quiet(__package__, logging.ERROR):  # what is wrong with a trace that is not kept concerns nobody
            again = retrace(unequal)
    except TraceError as error:
        logger.debug("%s: cannot be traced there: %s", prepared.name, error)
        return traced
    trial = Trial(again, prepared)
    free = traced.spec.axes.keys() <= again.spec.axes.keys()
    if free and all(trial.agrees(inputs) is not False for inputs in (prepared.original, prepared.inputs)):
        return again
    return traced


def _unequal(equal: list[Decision], base: Mapping[str, int]) -> dict[str, int]:
    """The nearest larger size of each axis at which none of the comparisons comes out equal; empty where there is none."""
    sizes: dict[str, int] = {}
    for name, size in base.items():
        about = [each for each in equal if name in each.text]
        if not about:
            continue
        larger = (n for n in range(size + 1, size + _FAR) if all(each.is_broken({**base, name: n}) for each in about))
        found = next(larger, None)
        if found is None:
            return {}
        sizes[name] = found
    return sizes
