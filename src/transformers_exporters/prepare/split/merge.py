"""Merge two consecutive decode steps into one call with two query tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

# Along which axis two steps are joined, by the last part of the kwarg's name.
_SEQUENCE_AXIS = 1


def merge_steps(first: Mapping[str, Any], second: Mapping[str, Any], cache_name: str | None) -> dict[str, Any]:
    """The kwargs of one forward that does the work of two.

    Args:
        first: Kwargs of a decode step with one token.
        second: Kwargs of the step after it.
        cache_name: The cache's kwarg; the merged call starts from the first step's cache.
    """
    merged: dict[str, Any] = {}
    for name, value in first.items():
        after = second.get(name, value)
        merged[name] = value if name == cache_name else _merge(name, value, after)
    return merged


def _merge(name: str, first: Any, second: Any) -> Any:
    if type(first) is dict and type(second) is dict:
        return {key: _merge(name, first[key], second[key]) for key in first}
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return second
    if name.endswith("mask") and first.dim() == 4:
        return _merge_square_masks(first, second)
    if name.endswith("mask") and first.dim() == 2:
        return second  # covers everything that was seen, the second token included
    if name.endswith("position_ids"):
        return torch.cat([first, second], dim=-1)
    if first.dim() >= 2 and first.shape[_SEQUENCE_AXIS] == 1 and second.shape == first.shape:
        return torch.cat([first, second], dim=_SEQUENCE_AXIS)
    return second


def _merge_square_masks(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Stack two `[batch, heads, 1, keys]` masks along the query axis; the first step sees none of the later keys."""
    missing = second.shape[-1] - first.shape[-1]
    if missing > 0:
        fill = False if first.dtype == torch.bool else torch.finfo(first.dtype).min
        first = torch.nn.functional.pad(first, (0, missing), value=fill)
    return torch.cat([first, second], dim=-2)
