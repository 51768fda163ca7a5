"""`verify`: compare an artifact with the model that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ..errors import ConfigError
from . import options
from .screen import FAILED, command


def verify(
    artifact: options.Artifact,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="The source checkpoint, if it is not where the manifest says.", show_default=False
        ),
    ] = None,
    dtype: options.Dtype = None,
    trust_remote_code: options.Trust = False,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Compare every output with the model, also on sizes that were never traced. Exit code 1 if one differs."""
    with command(as_json=as_json, debug=debug) as screen:
        from ..artifact.store import open_artifact

        options.check_dtype(dtype)
        _, manifest = open_artifact(artifact)
        checkpoint = model or manifest.model.name
        if not checkpoint:
            raise ConfigError("The manifest does not name a checkpoint: give it with --model.")
        with screen.stage(f"Load {checkpoint}"):
            from ..hf.plain_values import find_class
            from ..prepare.checkpoint import load_checkpoint
            from ..verification import verify as compare

            outputs = {tensor.name for spec in manifest.components.values() for tensor in spec.outputs}
            source = load_checkpoint(
                checkpoint,
                dtype=dtype or manifest.model.dtype,
                trust_remote_code=trust_remote_code,
                model_class=None if "sentence_embedding" in outputs else find_class(manifest.model.class_path),
            )
        with screen.stage("Verify"):
            report = compare(source, artifact, trust_remote_code=trust_remote_code)
        screen.result(report.to_dict(), verification_table(report.to_dict()))
        if not report.ok:
            raise typer.Exit(FAILED)


def verification_table(verification: Mapping[str, Any], limit: int = 24) -> Table:
    """The worst error per component and output over all cases; at most `limit` rows.

    Args:
        verification: `Report.to_dict()`.
        limit: Rows at most.
    """
    worst: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in verification["rows"]:
        key = (row["component"], row["output"])
        if key not in worst or _badness(row) > _badness(worst[key]):
            worst[key] = row
    shown = sorted(worst.values(), key=_badness, reverse=True)[:limit]
    cases = len({row["case"] for row in verification["rows"]})
    quantized = any(row["cosine"] is not None for row in verification["rows"])
    relation = "of the quantized model agree with" if quantized else "equal to"
    equal = f"{len(worst)} outputs {relation} the model's in {cases} cases"
    hidden = len(worst) - len(shown)
    notes = dict.fromkeys(str(row["note"]) for row in worst.values() if row.get("note"))
    table = Table(
        title=equal if verification["ok"] else "Outputs that differ from the model's",
        caption="; ".join((*notes, *([f"and {hidden} outputs with smaller errors"] if hidden else []))) or None,
    )
    for name in ("component", "output", "worst case"):
        table.add_column(name, overflow="fold")
    for name in ("absolute", "relative", *(("cosine", "same top") if quantized else ("tolerance",))):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in shown:
        mark = "[green]✓[/]" if row["ok"] else "[yellow]?[/]" if row.get("note") else "[red]✗[/]"
        last = (_number(row["cosine"]), _number(row["top1"])) if quantized else (f"{row['tolerance']:.0e}",)
        numbers = (f"{row['abs']:.1e}", f"{row['rel']:.1e}", *last)
        table.add_row(row["component"], row["output"], escape(str(row["case"])), *numbers, mark)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _badness(row: Mapping[str, Any]) -> tuple[bool, bool, float, float]:
    """Wrong outputs first, then the model's own results before the layers of its cache, then by error."""
    return not row["ok"], "." not in row["output"], -(row["cosine"] or 0.0), row["rel"]
