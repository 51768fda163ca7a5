"""The list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from .demo import demo
from .export import export
from .generate import generate
from .inspect import inspect
from .run import run
from .verify import verify
from .workarounds import workarounds

app = typer.Typer(
    help="Export Hugging Face models to PyTorch, ONNX, OpenVINO and ExecuTorch, and prove the result.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (export, verify, run, generate, inspect, workarounds, demo):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold the options that belong to no command; `_version` has already acted when this runs."""
    del version
