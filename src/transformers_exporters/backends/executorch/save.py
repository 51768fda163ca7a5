"""Write programs to disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..contract import Lowered


def save(components: Sequence[Lowered], directory: Path, weights: Any = None) -> dict[str, tuple[str, ...]]:
    """Write every component's program.

    Args:
        components: What `lower` returned.
        directory: An existing directory.
        weights: Unused: the programs hold their weights.

    Returns:
        The files of each component, its program first.
    """
    files = {}
    for component in components:
        name = component.spec.name
        with open(directory / f"{name}.pte", "wb") as file:
            component.program.write_to_file(file)
        files[name] = (f"{name}.pte",)
    return files
