"""Branches of the model's own code on sizes: which of them the graph is right on one side of only.

Each comparison (`comparisons`) is tried where it would be answered otherwise. Those that matter become conditions of the
component, which are checked at every call. What one axis alone decides is a range where it can be (`ranges`).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping

from ..artifact.spec import AxisRange
from ..prepare.axes import with_traced_names
from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..prepare.resize import axis_sizes
from ..runtime.axis_expressions import holds
from .comparisons import Decision, decisions_of
from .ranges import Trial
from .record import Traced

logger = logging.getLogger(__name__)

#: Sizes tried beside those around the traced one, the nearest first.
_SIZES = (1, 2, 3, 4, 5, 8, 13, 16, 32, 64, 128, 256, 512)
#: Trials of one component. A comparison that none was left for is taken to matter.
_MOST_TRIALS = 24
#: So many of the nearest sizes are tried, and the largest of those up to the other number.
_NEAR, _FAR = 2, 64


def conditions(traced: Traced, prepared: Prepared) -> dict[str, str]:
    """What must hold of a component's axes for its graph to be right, and the line of the model that asks.

    Args:
        traced: With proved ranges.
        prepared: What was traced. Its model runs here, in eager mode.
    """
    decisions = decisions_of(traced)
    if not decisions or is_referenced(prepared.model) or "cache" in traced.spec.axes:
        return {}  # a trial would read a whole checkpoint, or take a cache that does not belong to its inputs
    trial = Trial(traced, prepared)
    names = {name for name in traced.spec.axes if any(name in decision.text for decision in decisions)}
    base = axis_sizes(prepared.inputs, trial.axes, sorted(names))
    own = axis_sizes(prepared.original, trial.axes, base)
    points = list(_points(base, own, traced.spec.axes))
    undecided = {each: [p for p in points if each.is_broken(base | p)] for each in decisions}
    return {each.text: each.line for each in _that_matter(trial, undecided, base)}


def refused(traced: Traced, prepared: Prepared, needed: Mapping[str, str]) -> dict[str, int]:
    """The caller's sizes, if they are among those that a component's conditions refuse: to be traced at these."""
    own = _own_sizes(traced, prepared)
    broken = [text for text in needed if holds(text, own) is False]
    return {name: size for name, size in own.items() if any(name in text for text in broken)}


def with_conditions(traced: Traced, prepared: Prepared, needed: Mapping[str, str]) -> Traced:
    """The component with its conditions, which are reported. Those that the caller's own sizes break are not among them."""
    own, spec = _own_sizes(traced, prepared), traced.spec
    kept = {text: line for text, line in needed.items() if holds(text, own) is not False}
    if not kept:
        return traced
    logger.warning(
        "%s: the model's code decides by sizes, and the graph holds one way. It takes inputs for which this holds, and "
        "refuses others: %s.",
        spec.name,
        "; ".join(f"{text} ({line})" for text, line in kept.items()),
    )
    return dataclasses.replace(traced, spec=dataclasses.replace(spec, options={**spec.options, "conditions": kept}))


def _own_sizes(traced: Traced, prepared: Prepared) -> dict[str, int]:
    axes = with_traced_names(prepared.axes, traced.spec.inputs)
    return axis_sizes(prepared.original, axes, traced.spec.axes)


def _points(base: dict[str, int], own: dict[str, int], ranges: Mapping[str, AxisRange]) -> Iterator[dict[str, int]]:
    """Sizes to try: the caller's, and those of one axis at a time that the component takes, the nearest first."""
    if own != base:
        yield dict(own)
    for name, size in base.items():
        near = {size - 1, size + 1, size // 2, 2 * size, 2 * size + 1, 3 * size, *_SIZES} - {size}
        for other in sorted(near, key=lambda n: abs(n - size)):
            if other > 0 and ranges[name].allows(other):
                yield {name: other}


def _that_matter(
    trial: Trial, undecided: Mapping[Decision, list[dict[str, int]]], base: dict[str, int]
) -> list[Decision]:
    """The decisions without which the program differs from the model at a size where they would be made otherwise."""
    kept: list[Decision] = []
    verdicts: dict[tuple[tuple[str, int], ...], bool | None] = {}
    for decision, points in undecided.items():
        # Where a decision that matters would be another, too, the program is wrong whatever this one does.
        alone = [p for p in points if not any(other.is_broken(base | p) for other in kept)]
        for point in _near_and_far(alone):
            key = tuple(sorted(point.items()))
            if key not in verdicts:
                verdicts[key] = trial.same(point) if len(verdicts) < _MOST_TRIALS else False
            if verdicts[key] is False:
                kept.append(decision)
                break
    return kept


def _near_and_far(points: list[dict[str, int]]) -> list[dict[str, int]]:
    """The nearest of some points, and the last that is not too large to try: `max(a, b) > 12` asks two questions."""
    far = [point for point in points if max(point.values()) <= _FAR]
    return [*points[:_NEAR], *far[-1:]]
