"""Write programs to disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..contract import Lowered
from .pte import write_program


def save(components: Sequence[Lowered], directory: Path, weights: Any = None) -> dict[str, tuple[str, ...]]:
    """Write the components into one `.pte`.

    A single component is the method `forward` of `<name>.pte`; several are the methods of `model.pte`, named like the
    components, over one copy of every weight.

    Args:
        components: What `lower` returned.
        directory: An existing directory.
        weights: Unused: the programs hold their weights.

    Returns:
        The files of each component, its program first.
    """
    if any(component.program._tensor_data for component in components):
        return {component.spec.name: _write_apart(component, directory) for component in components}
    if len(components) == 1:
        file = f"{components[0].spec.name}.pte"
        data = components[0].program._pte_data
    else:
        file = "model.pte"
        data = write_program({component.spec.name: component.program for component in components})
    with open(directory / file, "wb") as stream:
        data.write_to_file(stream)
    return {component.spec.name: (file,) for component in components}


def _write_apart(component: Lowered, directory: Path) -> tuple[str, ...]:
    """A program whose delegate keeps its weights in a data file of its own (CUDA)."""
    name = component.spec.name
    with open(directory / f"{name}.pte", "wb") as stream:
        component.program.write_to_file(stream)
    files = [f"{name}.pte"]
    for tag, data in component.program._tensor_data.items():
        files.append(f"{name}.{tag.removesuffix('.ptd')}.ptd")
        with open(directory / files[-1], "wb") as stream:
            data.write_to_file(stream)
    return tuple(files)
