"""`run`: one component on given inputs, through the runtime alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..errors import ConfigError
from . import options
from .screen import command

#: Outputs up to this many numbers are printed with `--json`; larger ones go to `--output`.
_PRINTED = 256


def run(
    artifact: options.Artifact,
    component: Annotated[
        str | None, typer.Option("--component", "-c", help="Which one, if there are several.", show_default=False)
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", "-i", help="Arrays by input name: .npz or .json.", exists=True, dir_okay=False),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", help="Text for the saved tokenizer; repeat for a batch.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the outputs to this .npz.")] = None,
    device: options.Device = None,
    threads: options.Threads = None,
    trust_remote_code: options.Trust = False,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Run one graph of an artifact and show its outputs."""
    with command(as_json=as_json, debug=debug) as screen:
        if (inputs is None) == (not text):
            raise ConfigError("Give the inputs either as --inputs FILE or as --text TEXT.")
        import numpy as np

        from ..runtime.load import load

        settings: dict[str, Any] = options.runtime_options(device, threads)
        if trust_remote_code:
            settings["trust_remote_code"] = True
        with screen.stage("Open"):
            runtime = load(artifact, **settings)
            if component is None and len(runtime) > 1:
                raise ConfigError(f"Choose one of the components {', '.join(runtime)} with --component.")
            graph = runtime[component or next(iter(runtime))]
            names = {tensor.name for tensor in graph.spec.inputs}
            feeds = _read(inputs) if inputs else _tokenize(artifact, text or [], names)
        with screen.stage("Run"):
            start = time.perf_counter()
            outputs = dict(_leaves("", graph(**feeds)))
            seconds = time.perf_counter() - start
        if output is not None:
            np.savez(output, **outputs)
        result = {name: _describe(value, with_values=as_json) for name, value in outputs.items()}
        screen.result({"seconds": round(seconds, 4), "outputs": result}, _table(result))


def _read(file: Path) -> dict[str, Any]:
    import numpy as np

    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    if file.suffix == ".json":
        values = json.loads(file.read_text(encoding="utf-8"))
        return {name: np.asarray(value) if isinstance(value, list) else value for name, value in values.items()}
    raise ConfigError(f"--inputs takes a .npz or .json file, got {file.name}.")


def _tokenize(artifact: Path, text: list[str], names: set[str]) -> dict[str, Any]:
    """The saved tokenizer's arrays that the graph takes."""
    from ..hf.text import encode, load_tokenizer

    encoded = encode(load_tokenizer(artifact), text, chat=False)
    feeds = {name: tensor.numpy() for name, tensor in encoded.items() if name in names}
    if "position_ids" in names:
        # As generate counts them: from the first token that is not padding.
        feeds["position_ids"] = (encoded["attention_mask"].cumsum(-1) - 1).clamp(min=0).numpy()
    return feeds


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), child)
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from _leaves(f"{path}.{index}" if path else str(index), child)
    elif hasattr(value, "shape"):
        yield path or "output", value


def _describe(array: Any, *, with_values: bool) -> dict[str, Any]:
    import numpy as np

    numbers = np.asarray(array, dtype=np.float64)
    described: dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if numbers.size:
        described |= {"min": float(numbers.min()), "mean": float(numbers.mean()), "max": float(numbers.max())}
    if with_values and numbers.size <= _PRINTED:
        described["values"] = numbers.tolist()
    return described


def _table(result: dict[str, dict[str, Any]]) -> Table:
    table = Table(title="Outputs")
    for column in ("name", "dtype", "shape"):
        table.add_column(column, overflow="fold")
    for column in ("min", "mean", "max"):
        table.add_column(column, justify="right")
    for name, row in result.items():
        numbers = (f"{row[key]:.5g}" if key in row else "" for key in ("min", "mean", "max"))
        table.add_row(name, row["dtype"], str(row["shape"]).replace("[", "\\["), *numbers)
    return table
