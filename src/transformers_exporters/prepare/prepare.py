"""Model + raw inputs → `Prepared`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..errors import InputError
from .axes import name_axes
from .counters import counters_as_tensors
from .fixed_images import fixed_images
from .precision import in_own_precision
from .record import Prepared
from .sizes import choose_sizes, with_images_apart
from .untouched import kept_weights, untouched


def prepare(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    *,
    name: str = "model",
    resize_axes: bool = True,
    static: frozenset[str] = frozenset(),
) -> Prepared:
    """Copy the inputs, name their axes and choose the sizes to trace at.

    The caller holds `untouched(model)`: the eager model may run here.

    Args:
        model: The module to trace, already switched to a traceable form.
        inputs: Forward kwargs; tensors, caches, flags, nested containers. Not changed.
        name: The component's name.
        resize_axes: Whether the exporter may choose other sizes (`dynamic=True`).
        static: Names of axes that keep their size.
    """
    kwargs = {
        key: copy.deepcopy(_plain(value), _detached(value, {})) for key, value in inputs.items() if value is not None
    }
    kwargs = in_own_precision(model, kwargs)
    numbers, counters = counters_as_tensors(model, kwargs)
    axes, original = name_axes(kwargs), kwargs
    if resize_axes:
        # A model that keeps what it computed for the last size would compare with a trial's.
        with untouched(model), kept_weights(model):
            axes = with_images_apart(model, kwargs, axes)
            kwargs = choose_sizes(model, kwargs, axes, static)
            static |= fixed_images(model, original, kwargs, axes)
    return Prepared(
        name=name,
        model=model,
        inputs=kwargs,
        axes=axes,
        original=original,
        static=static,
        numbers=numbers,
        counters=counters,
    )


def _detached(value: Any, memo: dict[int, Any]) -> dict[int, Any]:
    """What `deepcopy` has to take for the tensors in `value` that autograd computed, which it refuses to copy."""
    if isinstance(value, torch.Tensor):
        if not value.is_leaf:
            memo[id(value)] = value.detach().clone()
    elif isinstance(value, Mapping):
        for item in value.values():
            _detached(item, memo)
    elif isinstance(value, list | tuple):
        for item in value:
            _detached(item, memo)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        _detached(vars(value), memo)
    return memo


def check_inputs(inputs: Any) -> None:
    """Raise `InputError` if `inputs` is not a dict of the forward's kwargs, or holds no tensor."""
    if not isinstance(inputs, Mapping) or not all(isinstance(key, str) for key in inputs):
        raise InputError("inputs must be a dict from forward argument name to value.")
    if not any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves([_plain(v) for v in inputs.values()])):
        raise InputError("inputs hold no tensor; pass what you would pass to model(**inputs).")


def _plain(value: Any) -> Any:
    """numpy arrays as tensors; a tokenizer's `BatchEncoding` and other mappings as dicts."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, torch.Tensor):
        return value.detach()
    return value
