"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and the warnings of dependencies.")]
Trust = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Run code that comes with the model or lies pickled in the artifact."),
]
Device = Annotated[
    str | None, typer.Option("--device", help="Where to run, in the engine's own terms (cuda, CPU, GPU).")
]
Dtype = Annotated[str | None, typer.Option("--dtype", help="Load the weights as float32, float16 or bfloat16.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads of the engine.")]
Artifact = Annotated[
    Path,
    typer.Argument(help="A directory that `export` wrote.", exists=True, file_okay=False, show_default=False),
]
Checkpoint = Annotated[
    str, typer.Argument(help="A checkpoint directory or a model id on the Hugging Face Hub.", show_default=False)
]
CheckpointOrNone = Annotated[
    str | None, typer.Argument(help="A checkpoint directory or a model id on the Hugging Face Hub.", show_default=False)
]


def runtime_options(device: str | None, threads: int | None) -> dict[str, Any]:
    """The options that were given, as keywords of a run door."""
    return {name: value for name, value in (("device", device), ("threads", threads)) if value is not None}


def check_dtype(dtype: str | None) -> None:
    """Raises `ConfigError` for a `--dtype` that no model is loaded in."""
    if dtype not in (None, "float32", "float16", "bfloat16"):
        raise ConfigError(f"--dtype must be float32, float16 or bfloat16, got {dtype!r}.")
