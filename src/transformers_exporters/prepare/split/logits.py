"""Which positions' logits a component returns."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from ...errors import InputError, UnsupportedModelError

_NAME = "logits_to_keep"


def keep_logits(model: torch.nn.Module, call: Mapping[str, Any], count: int) -> dict[str, Any]:
    """A forward's kwargs that ask for the logits of the last `count` positions; 0 for all.

    Raises:
        InputError: If `count` is negative.
        UnsupportedModelError: If the model always returns all of them.
    """
    if count < 0:
        raise InputError(f"logits_to_keep is a number of positions, or 0 for all of them; got {count}.")
    kept = {name: value for name, value in call.items() if name != _NAME}
    if count == 0:
        return kept
    if _NAME not in inspect.signature(type(model).forward).parameters:
        raise UnsupportedModelError(
            f"{type(model).__name__} returns the logits of all positions; export it without logits_to_keep."
        )
    return {**kept, _NAME: count}
