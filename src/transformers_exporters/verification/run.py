"""Compare an artifact, run in its real runtime, with the model that it came from."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from ..artifact.spec import ComponentSpec
from ..artifact.store import open_artifact, write_manifest
from ..errors import VerificationError
from ..hf.cache_layers import full_windows
from ..hf.engine_state import with_state
from ..hf.exported import ExportedModel
from ..prepare.record import Part
from ..prepare.samples import sample_inputs
from ..prepare.split import split_for_generation
from ..prepare.untouched import kept_weights, untouched
from .cases import cases, fixed_cases
from .comparison import compare, model_outputs
from .report import Report, Row


def verify(
    model: torch.nn.Module,
    artifact: ExportedModel | Path | str,
    inputs: Mapping[str, Any] | None = None,
    *,
    trust_remote_code: bool = False,
) -> Report:
    """Compare every output of every component with the eager model, at the given sizes and at others.

    A quantized artifact is not held to equality: its rows say how far it agrees (`Row.cosine`, `Row.top1`).

    Beside the inputs as they are, each component runs on another batch and on shorter and longer sequences, as far as
    its axes are dynamic and the model takes them. What was measured is written into the artifact's manifest.

    Args:
        model: The source model, in eval mode. Left as it was.
        artifact: The directory of a saved artifact, or an `ExportedModel`.
        inputs: Forward kwargs, or generate kwargs for an artifact for generation; None makes some from the config.
        trust_remote_code: See `ExportedModel.from_pretrained`.

    Raises:
        VerificationError: If the artifact's components are not those of the model.
        ArtifactError: If the artifact cannot be opened.
    """
    exported = artifact
    if not isinstance(exported, ExportedModel):
        exported = ExportedModel.from_pretrained(exported, trust_remote_code=trust_remote_code)
    rows: list[Row] = []
    refused: list[str] = []
    fixed: list[str] = []
    quantized = exported.manifest.config.get("quantizer") is not None
    for part in _parts(model, exported, inputs):
        component = exported[part.name]
        windows = full_windows() if part.full_windows else nullcontext()
        with untouched(part.model), kept_weights(part.model), windows, torch.no_grad():
            spec = with_state(component.spec)
            for case, kwargs in cases(spec, part):
                if (wanted := model_outputs(part, case, kwargs)) is None:
                    refused.append(f"{part.name}: {case}")
                    continue
                rows += compare(component, part, case, kwargs, wanted, quantized)
            fixed += [f"{part.name}: {case}" for case in _fixed(spec, part)]
    report = Report(tuple(rows), tuple(refused), tuple(fixed))
    _record(exported, report)
    return report


def _parts(model: torch.nn.Module, exported: ExportedModel, inputs: Mapping[str, Any] | None) -> list[Part]:
    generation = exported.manifest.generation
    if not generation:
        if inputs is None:
            taken = {tensor.name for component in exported.values() for tensor in component.spec.inputs}
            inputs = {name: value for name, value in sample_inputs(model).items() if name in taken}
        return [Part("model", model, inputs)]
    config = None
    if generation.get("static"):
        config = copy.deepcopy(exported.generation_config)
        config.cache_implementation, config.max_cache_len = "static", generation["max_cache_len"]
    split = split_for_generation(
        model,
        inputs if inputs is not None else sample_inputs(model, "generation"),
        generation_config=config,
        multi_token_decode=bool(generation.get("multi_token_decode")),
        read_values=True,
    )
    if missing := sorted({part.name for part in split.parts} ^ set(exported)):
        raise VerificationError(f"The artifact and {type(model).__name__} differ in the component {missing[0]}.")
    return list(split.parts)


def _fixed(spec: ComponentSpec, part: Part) -> Iterator[str]:
    """The cases that the model takes with tensors of the ranks of its own case: no graph returns two ranks."""
    taken = {case: other for case, kwargs in fixed_cases(spec, part) if (other := model_outputs(part, case, kwargs))}
    if not taken:
        return
    given = {name: value for name, value in part.inputs.items() if value is not None}
    own = model_outputs(part, "the given sizes", given) or {}
    for case, other in taken.items():
        if all(own[name].dim() == value.dim() for name, value in other.items() if name in own):
            yield case


def _record(exported: ExportedModel, report: Report) -> None:
    """The worst row of each output goes into the manifest, of a saved artifact at once."""
    rows = [dataclasses.asdict(row) for row in report.worst()]
    exported.manifest = dataclasses.replace(exported.manifest, verification=rows)
    if exported.directory is not None:
        root, saved = open_artifact(exported.directory)
        write_manifest(root, dataclasses.replace(saved, verification=rows))
