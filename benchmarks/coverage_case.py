"""One case of the coverage table: export, save, reload and compare with eager."""

from __future__ import annotations

import copy
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from results_file import first_line
from transformers_exporters import AutoExportConfig, AutoHfExporter, ExportedModel, UnsupportedModelError, verify
from transformers_exporters.testing import tiny_model
from zoo import load_inputs, load_model

#: Newly generated tokens that have to equal eager's.
_TOKENS = 8


@dataclass(frozen=True)
class Case:
    """What is exported.

    Attributes:
        model: A model type, or an entry of a directory of models.
        format: The backend.
        mode: `forward`: one graph; `generation`: the graphs of `generate`.
    """

    model: str
    format: str
    mode: str


Source = Callable[[Case], tuple[Any, dict[str, Any]]]


def from_type(case: Case) -> tuple[Any, dict[str, Any]]:
    """A tiny model of the type, with inputs."""
    model, inputs = tiny_model(case.model)
    if case.mode == "generation":
        inputs = {name: value for name, value in inputs.items() if not name.startswith("decoder_")}
    return model, inputs


def from_directory(directory: Path, case: Case) -> tuple[Any, dict[str, Any]]:
    """The model of an entry of a directory as `zoo.py` describes it, with its inputs."""
    task = "generate" if case.mode == "generation" else "forward"
    return load_model(directory / case.model, task), load_inputs(directory / case.model, task)


def run_case(case: Case, source: Source) -> dict[str, Any]:
    """`status` (`pass`, `fail` or `skip`), `reason`, and the `seconds` that the export computed, where it succeeded."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    result: dict[str, Any] = {"status": "fail", "reason": None, "seconds": None}
    try:
        model, inputs = source(case)
    except UnsupportedModelError as error:
        return {**result, "status": "skip", "reason": first_line(error)}
    except Exception as error:  # noqa: BLE001 - whatever a model's code raises
        return {**result, "status": "skip", "reason": f"the model does not load: {first_line(error)}"}
    if case.mode == "generation" and not (hasattr(model, "generate") and model.can_generate()):
        return {**result, "status": "skip", "reason": f"{type(model).__name__} does not generate"}
    if case.mode == "generation" and (problem := _cannot_generate(model, inputs)):
        return {**result, "status": "skip", "reason": f"the model itself does not generate: {problem}"}
    result["class"] = type(model).__name__
    try:
        with tempfile.TemporaryDirectory() as scratch:
            result["reason"] = _compare(case, model, inputs, Path(scratch) / "artifact", result)
    except Exception as error:  # noqa: BLE001 - the table says what went wrong
        result["reason"] = f"{result.pop('stage')}: {first_line(error)}"
    result.pop("stage", None)
    return {**result, "status": "fail" if result["reason"] else "pass"}


def _cannot_generate(model: Any, inputs: dict[str, Any]) -> str | None:
    """What eager's own `generate` raises on these inputs (a package that is missing, a token that must come last)."""
    try:
        model.generate(**copy.deepcopy(inputs), max_new_tokens=2, do_sample=False)
    except Exception as error:  # noqa: BLE001 - whatever a model's code raises
        return first_line(error)
    return None


def _compare(case: Case, model: Any, inputs: dict[str, Any], directory: Path, result: dict[str, Any]) -> str | None:
    """Why the case fails, or None; raises in the stage that `result["stage"]` names."""
    generation = case.mode == "generation"
    result["stage"] = "export"
    config = AutoExportConfig.from_dict({"export_format": case.format, "dynamic": True})
    exporter = AutoHfExporter.from_config(config)
    start = time.process_time()
    exported = exporter.export_model(model, inputs, for_generation=generation, config=config)
    result["seconds"] = round(time.process_time() - start, 1)
    result["stage"] = "save"
    exported.save_pretrained(directory)
    result["stage"] = "reload"
    reloaded = ExportedModel.from_pretrained(directory, trust_remote_code=True)
    result["stage"] = "run"
    report = verify(model, reloaded, inputs)
    if not report.rows:
        return "the model takes none of the tried inputs"
    wrong = [row for row in report.worst() if not row.ok]
    if wrong:
        row = max(wrong, key=lambda row: (row.note is None, row.rel))
        if row.note is not None:
            return f"{row.component}: {row.output} cannot be compared at {row.case}: {row.note}"
        return f"{row.component}: {row.output} differs by {row.rel:.1e} of its largest value at {row.case}"
    if report.fixed:
        return f"the model takes {report.fixed[0].partition(': ')[2]}, the artifact keeps the traced size"
    return _tokens_differ(model, reloaded, inputs) if generation else None


def _tokens_differ(model: Any, reloaded: Any, inputs: dict[str, Any]) -> str | None:
    wanted, got = (
        one.generate(**inputs, max_new_tokens=_TOKENS, min_new_tokens=_TOKENS, do_sample=False)
        for one in (model, reloaded)
    )
    return None if torch.equal(wanted, got) else "run: the generated tokens differ"
