"""`workarounds`: what this package does around the defects of others, and until which version."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ..errors import MissingBackendError
from . import options
from .screen import command

_SHARED = ("transformers_exporters.trace.patches", "transformers_exporters.repair.fixes")


def workarounds(
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="Only the shared ones and this backend's.", show_default=False)
    ] = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List the workarounds that apply to the installed versions: what breaks, where it is reported, for which versions."""
    with command(as_json=as_json, debug=debug) as screen:
        from ..doors import find_backend, formats
        from ..workarounds import collect

        packages = list(_SHARED)
        for name in [format] if format else formats():
            backend = find_backend(name)
            packages += [package for package in (backend.patches, backend.fixes) if package]
        rows: list[dict[str, Any]] = []
        for package in packages:
            if importlib.util.find_spec(package) is None:
                continue
            try:
                found = collect(package)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("transformers_exporters"):
                    raise
                screen.note(str(MissingBackendError(f"{package} is left out: {error.name} is not installed.")))
                continue
            rows += [
                {
                    "id": item.id,
                    "reason": item.reason,
                    "upstream": item.upstream,
                    "applies": dict(item.applies),
                    "targets": list(item.targets),
                }
                for item in found
            ]
        table = Table(title=f"{len(rows)} workarounds", show_lines=True)
        for column in ("id", "what breaks", "upstream", "versions"):
            table.add_column(column, overflow="fold")
        for row in rows:
            versions = ", ".join(f"{package} {specifier}" for package, specifier in row["applies"].items())
            table.add_row(row["id"], escape(row["reason"]), escape(row["upstream"]), versions or "all")
        screen.result({"workarounds": rows}, table)
