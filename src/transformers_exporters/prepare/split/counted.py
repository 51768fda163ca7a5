"""Plain numbers that `generate` gives to the steps: one graph serves all steps, so they have to stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def numbers_of_step(prefill: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, int | float]:
    """The numbers that a step is given and the prompt is not, or not the same: those that may be counted up."""
    return {
        name: value
        for name, value in step.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and prefill.get(name) != value
    }


def counted(numbers: Mapping[str, int | float], later: Mapping[str, Any]) -> str | None:
    """The first of `numbers` that a later step is given another value of, as `name=value, then value`; else None."""
    return next(
        (f"{name}={value}, then {later.get(name)}" for name, value in numbers.items() if later.get(name) != value), None
    )
