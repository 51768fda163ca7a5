"""Everything that one run of `generate` tells about how a model is to be split."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from ...errors import UnsupportedModelError
from ...hf.pytrees import CACHE_NAMES
from ...hf.steps import filled
from ..precision import narrowed, say_narrowed
from ..references import is_referenced
from ..shapes_only import without_values
from .delegated import Delegation, watching_inner_loops
from .loose_weights import WatchWeights
from .record_calls import Recording, recorded, run_generate

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """What was seen while a model generated.

    Attributes:
        recordings: The calls of each part by component name, and those of the model itself under `model`.
        delegation: The inner model whose `generate` ran, if one did.
        loose: Names of the weights that were used outside of the parts.
    """

    recordings: dict[str, Recording]
    delegation: Delegation
    loose: list[str]


def record_run(
    model: torch.nn.Module,
    submodules: Mapping[str, torch.nn.Module],
    inputs: Mapping[str, Any],
    tokens: int,
    generation_config: Any,
    read_values: bool,
) -> Run:
    """Generate `tokens` tokens; without reading the weights' values where they are only referenced.

    Args:
        model: The model.
        submodules: Its parts by component name.
        inputs: Generate kwargs.
        tokens: How many.
        generation_config: Used for the run.
        read_values: Read the values in any case.
    """

    def run(shapes_only: bool) -> Run:
        with ExitStack() as stack:
            if shapes_only:
                stack.enter_context(without_values(model))
            found = {"model": stack.enter_context(recorded(model, shapes_only, keep_states=True))}
            for name, module in submodules.items():
                found[name] = stack.enter_context(recorded(module, shapes_only, keep_results=True))
            delegation = stack.enter_context(watching_inner_loops(model))
            watched = stack.enter_context(WatchWeights(model, submodules.values())) if submodules else None
            run_generate(model, inputs, tokens, generation_config)
        _drop_questions(found["model"])
        return Run(found, delegation, list(watched.used) if watched else [])

    if is_referenced(model) and not read_values:
        try:
            return run(shapes_only=True)
        except Exception as error:  # noqa: BLE001 - a step that needs values: whatever op meets the meta device first
            logger.info("generate needs the weights' values (%s); reading them", error)
    try:
        return run(shapes_only=False)
    except (RuntimeError, IndexError) as error:
        if (cast := narrowed(model, inputs)) is not None:
            found = record_run(model, submodules, cast, tokens, generation_config, read_values)
            say_narrowed(model)
            return found
        name, said = type(model).__name__, str(error).strip().partition("\n")[0].rstrip(".")
        raise UnsupportedModelError(
            f"{name}.generate fails on these inputs when it generates {tokens} tokens, which shows what its graphs are: "
            f"{said}. Try other inputs, or export {name}'s forward, or its parts, and write the loop around them."
        ) from error


def _drop_questions(recording: Recording) -> None:
    """Drop the calls before the prompt's: what `generate` asks the model first, without a cache (Whisper: which language).

    MusicGen's runs the prompt twice; the run that made the cache of the next call is the one that counts.
    """
    calls = recording.calls
    first = next((index for index, call in enumerate(calls) if call.get("use_cache") is not False), 0)
    cached = next((i for i, call in enumerate(calls) if any(filled(call.get(name)) for name in CACHE_NAMES)), 0)
    first = max(first, cached - 1)
    del recording.calls[:first], recording.states[:first]
