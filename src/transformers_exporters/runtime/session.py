"""One opened component: what every backend's run door returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..artifact.spec import ComponentSpec


class Session(Protocol):
    """Runs one graph on flat, named arrays.

    Attributes:
        spec: The component's border.
        arrays: What `run` takes and returns: `"numpy"` arrays (bfloat16 as `ml_dtypes.bfloat16`) or `"torch"` tensors.
    """

    spec: ComponentSpec
    arrays: str

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the outputs by name (`TensorSpec.name`) from the inputs by name, already checked and cast."""
        ...
