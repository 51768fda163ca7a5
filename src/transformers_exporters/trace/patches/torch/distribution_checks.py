"""Probability distributions without the checks of their parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....workarounds import Workaround


def unchecked(original: Callable[..., None]) -> Callable[..., None]:
    """`Distribution.__init__` that does not ask whether the parameters' values are in their range."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args[:2], **{**kwargs, "validate_args": False})

    return init


WORKAROUND = Workaround(
    reason="A distribution checks its parameters when it is made: a question about values that a trace cannot answer "
    "(`Categorical(logits=...).entropy()` in BLT's patcher).",
    upstream="none: `validate_args=False` is the way to leave them out, and modelling code does not say it",
    targets=("torch.distributions.distribution:Distribution.__init__",),
    apply=unchecked,
)
