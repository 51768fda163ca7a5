"""Find a model's generation components by running `generate` once and recording its forwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch

from ...errors import UnsupportedModelError
from ...hf.cache_layers import full_windows
from ...hf.submodules import generation_parts
from ..flags import make_traceable, refuse_losses
from ..prepare import check_inputs
from ..record import Part
from ..references import is_referenced
from ..shapes_only import without_values
from ..untouched import untouched
from .composite import composite_parts, largest
from .delegated import DelegatedInputs, Delegation, watching_inner_loops
from .empty_cache import without_empty_cache
from .ignored import ignores_mask
from .logits import keep_logits
from .loose_weights import WatchWeights
from .merge import merge_steps
from .module_state import CACHE_NAMES, WithModuleState, changed, state_key
from .record_calls import Recording, recorded, run_generate

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Split:
    """A model's generation components, and how to drive them.

    Attributes:
        parts: The components in the order in which generation runs them.
        metadata: For the manifest: `cache_argument`, `static`, `max_cache_len`, `multi_token_decode`; where it applies,
            `joined` (lists of tensors that a component takes as one) and `delegate` (the inner model that generates).
        loose: Weights that the model's Python code uses between the components, by name.
    """

    parts: list[Part]
    metadata: dict[str, Any] = field(default_factory=dict)
    loose: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class _Record:
    recordings: dict[str, Recording]
    delegation: Delegation
    loose: list[str]


def decompose_for_generation(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    generation_config: Any = None,
    multi_token_decode: bool = False,
    logits_to_keep: int | None = None,
) -> dict[str, tuple[torch.nn.Module, dict[str, Any]]]:
    """The submodules that generation runs, each with the forward kwargs that it was given.

    `model.generate(**inputs)` runs once for two tokens (three with `multi_token_decode`); the model, its config and the
    inputs stay as they were.

    Args:
        model: A model with `generate`.
        inputs: Generate kwargs; small representative values suffice.
        generation_config: Used for the run; `cache_implementation="static"` gives a fixed-size cache.
        multi_token_decode: Merge two decode steps into one call with two query tokens.
        logits_to_keep: How many of the last positions' logits each component returns; 0 for all of them. By default what
            `generate` asks for: the last one for a prompt, all with `multi_token_decode`.

    Returns:
        `{component name: (submodule, forward kwargs)}`; run `submodule(**kwargs)` on a copy of the kwargs, since a
        forward writes into its cache.

    Raises:
        UnsupportedModelError: If the model cannot generate, or its `generate` runs no forward.
    """
    split = split_for_generation(
        model,
        inputs,
        generation_config=generation_config,
        multi_token_decode=multi_token_decode,
        logits_to_keep=logits_to_keep,
    )
    return {part.name: (part.model, dict(part.inputs)) for part in split.parts}


def split_for_generation(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    *,
    generation_config: Any = None,
    multi_token_decode: bool = False,
    logits_to_keep: int | None = None,
    read_values: bool = False,
) -> Split:
    """Like `decompose_for_generation`, as records for the pipeline.

    Args:
        model: See there.
        inputs: See there.
        generation_config: See there.
        multi_token_decode: See there.
        logits_to_keep: See there.
        read_values: Record real values also where the weights are only referenced; a trace needs none, a comparison does.
    """
    if not hasattr(model, "generate"):
        raise UnsupportedModelError(f"{type(model).__name__} has no generate method; use export or export_model.")
    check_inputs(inputs)
    refuse_losses(inputs)
    with untouched(model), full_windows():
        make_traceable(model, experts=None)
        needed = 3 if multi_token_decode else 2
        submodules = generation_parts(model)
        record = _record(model, submodules, inputs, needed, generation_config, read_values)
        recordings, delegation = record.recordings, record.delegation
        calls = recordings["model"].calls
        loose: list[str] = []
        if not calls and delegation.path:
            inner = model.get_submodule(delegation.path)
            split = split_for_generation(
                inner,
                delegation.inputs,
                generation_config=generation_config,
                multi_token_decode=multi_token_decode,
                logits_to_keep=logits_to_keep,
                read_values=read_values,
            )
            names = [name for name, value in delegation.inputs.items() if isinstance(value, torch.Tensor)]
            outer = DelegatedInputs(model, inner, names).eval()
            return Split(
                [Part("embed_inputs", outer, dict(inputs)), *split.parts],
                {**split.metadata, "delegate": delegation.path},
                {f"{delegation.path}.{name}": value for name, value in split.loose.items()},
            )
        if len(calls) < needed:
            raise UnsupportedModelError(
                f"{type(model).__name__}.generate ran forward {len(calls)} times for {needed} tokens; "
                "export its parts with export instead."
            )
        prefill, steps = calls[0], calls[1:]
        cache_name = next((name for name in CACHE_NAMES if steps[0].get(name) is not None), None)
        for call in calls:
            _add_mask(model, call, cache_name)
        decode = merge_steps(steps[0], steps[1], cache_name) if multi_token_decode else steps[0]
        if multi_token_decode:
            decode.pop("logits_to_keep", None)  # every position's logits: speculative decoding verifies them all
        if logits_to_keep is not None:
            prefill, decode = (keep_logits(model, call, logits_to_keep) for call in (prefill, decode))
        static = _is_static(decode.get(cache_name)) if cache_name else False
        states = recordings["model"].states
        kept, step = changed(states[1], states[2]), model
        if kept:
            decode = {**decode, "module_state": {state_key(name): states[1][name] for name in kept}}
            step = WithModuleState(model, kept).eval()
        frozen = frozenset() if multi_token_decode else frozenset({"sequence", "query", "decoder_sequence"})
        decode_part = Part("decode", step, decode, static=frozen, full_windows=True)
        ignored = ["attention_mask"] if ignores_mask(model, prefill) else []
        composite = composite_parts(model, submodules, recordings, prefill)
        if composite is not None:
            parts = [*composite.parts, decode_part]
            loose = record.loose
        else:
            first = Part("prefill", step, without_empty_cache(step, prefill, cache_name), full_windows=True)
            parts = [decode_part] if static and multi_token_decode else [first, decode_part]
            if "encoder" in submodules and recordings["encoder"].calls:
                _add_mask(submodules["encoder"], recordings["encoder"].calls[0], None)
                called = {name: module for name, module in submodules.items() if recordings[name].calls}
                parts = [*(Part(n, module, largest(recordings[n].calls)) for n, module in called.items()), *parts]
                loose = record.loose
    metadata: dict[str, Any] = {
        "cache_argument": cache_name,
        "static": static,
        "max_cache_len": _length(decode[cache_name]) if static and cache_name else None,
        "multi_token_decode": multi_token_decode,
        "ignored": ignored,
    }
    if composite is not None and composite.joined:
        metadata["joined"] = composite.joined
    return Split(parts, metadata, {name: _weight(model, name) for name in loose})


def _record(
    model: torch.nn.Module,
    submodules: Mapping[str, torch.nn.Module],
    inputs: Mapping[str, Any],
    tokens: int,
    generation_config: Any,
    read_values: bool,
) -> _Record:
    """The forwards of one `generate`, by component; without reading the weights where they are only referenced."""

    def run(shapes_only: bool) -> _Record:
        with ExitStack() as stack:
            if shapes_only:
                stack.enter_context(without_values(model))
            found = {"model": stack.enter_context(recorded(model, shapes_only, keep_states=True))}
            for name, module in submodules.items():
                found[name] = stack.enter_context(recorded(module, shapes_only, keep_results=True))
            delegation = stack.enter_context(watching_inner_loops(model))
            watched = stack.enter_context(WatchWeights(model, submodules.values())) if submodules else None
            run_generate(model, inputs, tokens, generation_config)
        return _Record(found, delegation, list(watched.used) if watched else [])

    if is_referenced(model) and not read_values:
        try:
            return run(shapes_only=True)
        except Exception as error:  # noqa: BLE001 - a step that needs values: whatever op meets the meta device first
            logger.info("generate needs the weights' values (%s); reading them", error)
    return run(shapes_only=False)


def _weight(model: torch.nn.Module, name: str) -> torch.Tensor:
    path, _, last = name.rpartition(".")
    value: torch.Tensor = getattr(model.get_submodule(path), last)
    return value.detach()


def _add_mask(model: torch.nn.Module, call: dict[str, Any], cache_name: str | None) -> None:
    """`generate` drops an all-ones mask; a graph without a mask input could never run a padded batch."""
    parameters = inspect.signature(type(model).forward).parameters
    ids = call.get("input_ids", call.get("inputs_embeds"))
    encoded = getattr(call.get("encoder_outputs"), "last_hidden_state", None)
    if encoded is not None:  # the mask of an encoder-decoder model is its encoder's
        ids, cache_name = (encoded if getattr(model, "main_input_name", "") == "input_ids" else None), None
    if "attention_mask" not in parameters or call.get("attention_mask") is not None or ids is None:
        return
    past = _seen(call.get(cache_name)) if cache_name else 0
    if past is not None:
        call["attention_mask"] = torch.ones(ids.shape[0], past + ids.shape[1], dtype=torch.long, device=ids.device)


def _seen(cache: Any) -> int | None:
    """How many positions a cache has seen, or None if it does not count them (a recurrent state)."""
    if cache is None:
        return 0
    try:
        return int(cache.get_seq_length())
    except (AttributeError, ValueError):
        return None


def _is_static(cache: Any) -> bool:
    return bool(getattr(cache, "is_compileable", False)) and _length(cache) is not None


def _length(cache: Any) -> int | None:
    try:
        length = int(cache.get_max_length())
    except (AttributeError, ValueError, TypeError):
        return None
    return length if length > 0 else None
