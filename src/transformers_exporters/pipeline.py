"""The way of a model to its artifact, top to bottom: prepare → trace → repair → quantize → lower → save."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from .backends.contract import Lowered
from .configs import ExportConfig
from .doors import Backend
from .errors import ExportError, LoweringError
from .exclusive import EXCLUSIVE
from .hf.cache_layers import full_windows
from .hf.exported import ExportedModel, LoweredPart
from .hf.source import describe_source
from .prepare.checkpoint import load_checkpoint
from .prepare.counters import never_in_place
from .prepare.flags import make_traceable, refuse_losses
from .prepare.number_buffers import numbers_for_buffers
from .prepare.placeholders import placeholders
from .prepare.plain_torch import plain_torch
from .prepare.prepare import check_inputs, prepare
from .prepare.record import Part
from .prepare.split import Split, split_for_generation
from .prepare.untouched import untouched
from .quantize.calibration import calibrate
from .quantize.contract import Calibration
from .repair.passes import repair
from .repair.source_line import source_line
from .trace.capture import capture, first_line
from .trace.record import Traced
from .trace.uncached import uncached
from .workarounds import Patching, collect

__all__ = ["export_model", "export_part", "load_checkpoint", "trace_part"]

_TRACE_PATCHES = f"{__package__}.trace.patches"


def export_part(
    part: Part, backend: Backend, config: ExportConfig, calibration: Calibration | None = None
) -> tuple[Traced, Lowered]:
    """Take one component through every stage but the last (saving)."""
    lower = backend.load("lower")
    quantizer = config.quantizer
    with EXCLUSIVE, plain_torch(part.model):
        traced = trace_part(part, backend, config)
        traced = repair(traced, backend, config)
        data = calibration or Calibration((part.inputs,))
        if quantizer is not None:
            traced = quantizer.quantize_program(traced, data, backend.format)
        with _said_by_us(backend.format, traced):
            lowered: Lowered = lower(traced, config)
        if quantizer is not None:
            lowered = quantizer.quantize_lowered(lowered, data)
        if traced.assumed:
            lowered = _with_assumed(lowered, list(traced.assumed))
        return traced, lowered


@contextmanager
def _said_by_us(format: str, traced: Traced) -> Iterator[None]:
    """While held, an engine's own error is raised as ours, with the line of the model whose op it names."""
    try:
        yield
    except (ExportError, MemoryError):
        raise
    except Exception as error:
        said = first_line(error)
        named = (n for n in traced.program.graph.nodes if n.op == "call_function" and str(n.target) in said)
        line = next(map(source_line, named), "no source line known")
        raise LoweringError(
            f"{format} could not take {traced.spec.name!r}: {type(error).__name__}: {said} (at {line}); write that part of "
            "the model in other ops, or add a repair that does."
        ) from error


def _with_assumed(lowered: Lowered, lines: list[str]) -> Lowered:
    """The component that says what its graph assumes: to its run door, and to the reader of the manifest."""
    spec = dataclasses.replace(lowered.spec, options={**lowered.spec.options, "assumed": lines})
    return dataclasses.replace(lowered, spec=spec, notes={**lowered.notes, "assumed": lines})


def trace_part(part: Part, backend: Backend, config: ExportConfig) -> Traced:
    """Prepare and trace one component; the model, its config and the inputs stay as they were."""
    check_inputs(part.inputs)
    refuse_losses(part.inputs)
    patches = collect(_TRACE_PATCHES) + (collect(backend.patches) if backend.patches else ())
    with (
        Patching(patches, part.model, config.disabled_workarounds) as patching,
        uncached(part.model),
        untouched(part.model),
        placeholders(part.model),
        full_windows() if part.full_windows else nullcontext(),
    ):
        make_traceable(part.model, backend.experts)
        numbers_for_buffers(part.model)
        prepared = prepare(
            part.model,
            part.inputs,
            name=part.name,
            resize_axes=config.dynamic and config.dynamic_shapes is None,
            static=part.static,
        )
        with never_in_place(prepared.counters):
            return capture(prepared, config, patching.fired)


def export_model(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    backend: Backend,
    config: ExportConfig | Mapping[str, ExportConfig],
    *,
    for_generation: bool = False,
    generation_config: Any = None,
    multi_token_decode: bool = False,
    logits_to_keep: int | None = None,
    tokenizer: Any = None,
) -> ExportedModel:
    """Split the model where generation needs several graphs, export every part, and assemble the result."""
    split = _splitter(
        model,
        for_generation,
        generation_config=generation_config,
        multi_token_decode=multi_token_decode,
        logits_to_keep=logits_to_keep,
    )
    whole = split(inputs)
    lowered: list[LoweredPart] = []
    with ExitStack() as quantized:
        calibrations: dict[int, dict[str, Calibration]] = {}
        for part in whole.parts:
            own = config if isinstance(config, ExportConfig) else config[part.name]
            if own.quantizer is not None and id(own.quantizer) not in calibrations:
                calibrations[id(own.quantizer)] = calibrate(own.quantizer, inputs, lambda item: split(item).parts)
                quantized.enter_context(own.quantizer.quantize_model(model))
            data = calibrations.get(id(own.quantizer), {}).get(part.name)
            traced, result = export_part(part, backend, own, data)
            lowered.append(LoweredPart(result, traced.fired))
    first = config if isinstance(config, ExportConfig) else next(iter(config.values()))
    source = describe_source(model, tokenizer, whole.loose)
    return ExportedModel.of_parts(tuple(lowered), source, first, whole.metadata)


def _splitter(model: torch.nn.Module, for_generation: bool, **options: Any) -> Callable[[Mapping[str, Any]], Split]:
    """What turns inputs of the model into its components."""
    if for_generation:
        return partial(split_for_generation, model, **options)
    return lambda inputs: Split([Part("model", model, inputs)])
