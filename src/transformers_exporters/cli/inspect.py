"""`inspect`: what an artifact says about itself, without opening an engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from . import options
from .screen import command

if TYPE_CHECKING:
    from ..artifact.manifest import Manifest
    from ..artifact.spec import TensorSpec


def inspect(artifact: options.Artifact, as_json: options.Json = False, debug: options.Debug = False) -> None:
    """Show an artifact's components, their inputs and outputs with named axes, files, versions and measured errors."""
    with command(as_json=as_json, debug=debug) as screen:
        from ..artifact.store import open_artifact

        _, manifest = open_artifact(artifact)
        screen.result(
            json.loads(manifest.to_json()),
            f"[bold]{escape(manifest.model.class_path.rpartition('.')[2])}[/], {manifest.format}, "
            f"{manifest.model.dtype}, {manifest.model.parameters:,} parameters",
            components_table(manifest),
            *(_border_table(manifest, name) for name in manifest.components),
            _facts_table(manifest),
        )


def components_table(manifest: Manifest) -> Table:
    """One row a component: sizes of its border and of its own files."""
    table = Table(title="Components")
    for name in ("component", "inputs", "outputs", "axes"):
        table.add_column(name)
    table.add_column("files")
    for name, spec in manifest.components.items():
        files = ", ".join(f"{file} ({megabytes(manifest.files[file].bytes)})" for file in spec.files)
        axes = ", ".join(spec.axes) or "all fixed"
        table.add_row(name, str(len(spec.inputs)), str(len(spec.outputs)), escape(axes), files)
    total = sum(record.bytes for record in manifest.files.values())
    table.caption = f"{megabytes(total)} in {len(manifest.files)} files"
    return table


def megabytes(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"


def _border_table(manifest: Manifest, name: str) -> Table:
    spec = manifest.components[name]
    state = {end for pair in spec.state for end in pair}
    table = Table(title=f"{name}: inputs and outputs")
    for column in ("", "name", "dtype", "shape", "state"):
        table.add_column(column, overflow="fold")
    for way, tensors in (("in", spec.inputs), ("out", spec.outputs)):
        for tensor in tensors:
            table.add_row(way, tensor.name, tensor.dtype, _shape(tensor), "✓" if tensor.name in state else "")
    ranges = (
        f"{axis}: {bounds.minimum}…{bounds.maximum or ''}"
        + (f" (multiples of {bounds.multiple_of})" if bounds.multiple_of > 1 else "")
        for axis, bounds in spec.axes.items()
    )
    table.caption = ", ".join(ranges) or None
    return table


def _shape(tensor: TensorSpec) -> str:
    return escape(f"[{', '.join(str(size) for size in tensor.shape)}]")


def _facts_table(manifest: Manifest) -> Table:
    table = Table(title="How it was made", show_header=False)
    table.add_row("packages", ", ".join(f"{name} {version}" for name, version in manifest.packages.items()))
    fired = {name: count for counts in manifest.workarounds.values() for name, count in counts.items()}
    table.add_row("workarounds", ", ".join(sorted(fired)) or "none")
    rows = manifest.verification
    proved = "not verified" if rows is None else f"{len(rows)} comparisons"
    table.add_row("verification", proved)
    return table
