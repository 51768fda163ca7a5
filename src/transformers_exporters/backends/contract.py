"""What a backend's export door returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..artifact.spec import ComponentSpec
from ..artifact.weights import WeightRef


@dataclass(frozen=True)
class Lowered:
    """One component in a backend's own form.

    Attributes:
        spec: The border, with the backend's port names and `options` filled in.
        program: What `exporter.export` returns to the user (`ONNXProgram`, `openvino.Model`, ...).
        weights: References for the weights that `program` does not hold by value, by the name that it knows them by.
        notes: What the user should know (delegated and undelegated op counts, ...), for the manifest.
    """

    spec: ComponentSpec
    program: Any
    weights: Mapping[str, WeightRef] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
