"""The inputs of every component, captured from a calibration dataset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import InputError
from ..prepare.record import Part
from .contract import Calibration, Quantizer


def calibrate(
    quantizer: Quantizer,
    inputs: Mapping[str, Any],
    split: Callable[[Mapping[str, Any]], Iterable[Part]],
) -> dict[str, Calibration]:
    """Calibration data by component name; empty for a quantizer that measures nothing.

    Args:
        quantizer: Its `calibration_dataset` is read once.
        inputs: What the model is exported with; used, with a warning, where there is no dataset.
        split: The components that one item of the dataset leads to, with their kwargs.

    Raises:
        InputError: If the dataset is empty or an item is not a dict.
    """
    if not quantizer.calibrates:
        return {}
    dataset = quantizer.calibration_dataset
    if dataset is None:
        warnings.warn(
            f"{type(quantizer).__name__} measures value ranges with the one example that the model is exported with; "
            "give it a calibration_dataset of typical inputs for an accurate result.",
            stacklevel=2,
        )
        dataset = [inputs]
    found: dict[str, list[Mapping[str, Any]]] = {}
    for item in dataset:
        if not isinstance(item, Mapping):
            raise InputError(f"A calibration_dataset yields dicts of inputs, got a {type(item).__name__}.")
        for part in split(item):
            found.setdefault(part.name, []).append(part.inputs)
    if not found:
        raise InputError("The calibration_dataset is empty; give some inputs, or None for the example's.")
    return {name: Calibration(tuple(kwargs)) for name, kwargs in found.items()}
