"""Find a model's generation components by running `generate` once and recording its forwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ...errors import UnsupportedModelError
from ...hf.cache_layers import full_windows
from ...hf.outputs import without_details
from ...hf.pytrees import CACHE_NAMES
from ...hf.submodules import generation_parts
from ..flags import make_traceable, refuse_losses
from ..prepare import check_inputs
from ..record import Part
from ..untouched import kept_weights, untouched
from .composite import composite_parts, largest
from .counted import counted, numbers_of_step
from .delegated import DelegatedInputs
from .empty_cache import without_empty_cache
from .ignored import ignores_mask
from .logits import keep_logits
from .masks import add_decoder_mask, add_mask
from .merge import merge_steps
from .module_state import WithModuleState, changed, state_key
from .recording import Run, record_run
from .several_tokens import takes_several

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Split:
    """A model's generation components, and how to drive them.

    Attributes:
        parts: The components in the order in which generation runs them.
        metadata: For the manifest: `cache_argument`, `static`, `max_cache_len`, `multi_token_decode`; where it applies,
            `joined` and `unread` (how `embed_inputs` takes what encoders return), `ignored` (arguments that no graph takes) and
            `delegate` (the inner model that generates).
        loose: Weights that the model's Python code uses between the components, by name.
    """

    parts: list[Part]
    metadata: dict[str, Any] = field(default_factory=dict)
    loose: dict[str, torch.Tensor] = field(default_factory=dict)


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
    taken = inspect.signature(model.generate).parameters.values()  # type: ignore[arg-type]
    if not any(p.kind is p.VAR_KEYWORD or p.name == "max_new_tokens" for p in taken):
        raise UnsupportedModelError(
            f"{type(model).__name__}.generate takes no max_new_tokens: it is no loop over tokens. Use export or export_model, "
            "and call what they give where it calls the model."
        )
    check_inputs(inputs)
    refuse_losses(inputs)
    options: dict[str, Any] = {
        "generation_config": generation_config,
        "multi_token_decode": multi_token_decode,
        "logits_to_keep": logits_to_keep,
    }
    with untouched(model), kept_weights(model), full_windows():
        make_traceable(model, experts=None)
        needed = 3 if multi_token_decode else 2
        submodules = generation_parts(model)
        run = record_run(model, submodules, inputs, needed, generation_config, read_values)
        calls = run.recordings["model"].calls
        path, inner = run.delegation.path, run.delegation.inputs
        if not calls and path and inner is not None:
            return _delegated(model, inputs, path, inner, {**options, "read_values": read_values})
        if len(calls) < needed:
            where = f"generate runs in model.{path}: export that one for generation" if path else "export its parts"
            raise UnsupportedModelError(
                f"{type(model).__name__}.generate ran forward {len(calls)} times for {needed} tokens; {where} instead."
            )
        if numbers := numbers_of_step(calls[0], calls[1]):
            if not multi_token_decode:
                calls = record_run(model, {}, inputs, 3, generation_config, read_values).recordings["model"].calls
            if found := counted(numbers, calls[2]):
                raise UnsupportedModelError(
                    f"{type(model).__name__}.generate gives every step another number ({found}), and a graph holds one of "
                    "them: export its forward once for each number instead."
                )
        return _split(model, submodules, run, multi_token_decode, logits_to_keep)


def _delegated(
    model: Any, inputs: Mapping[str, Any], path: str, inner_inputs: Mapping[str, Any], options: dict[str, Any]
) -> Split:
    """The outer model's step, then the components of the inner model that generates."""
    inner = model.get_submodule(path)
    split = split_for_generation(inner, inner_inputs, **options)
    names = [name for name, value in inner_inputs.items() if isinstance(value, torch.Tensor)]
    step = DelegatedInputs(model, inner, names).eval()
    return Split(
        [Part("embed_inputs", step, dict(inputs)), *split.parts],
        {**split.metadata, "delegate": path},
        {f"{path}.{name}": value for name, value in split.loose.items()},
    )


def _split(
    model: torch.nn.Module, submodules: Mapping[str, torch.nn.Module], run: Run, several: bool, rows: int | None
) -> Split:
    """The components of a model whose own forward generates."""
    calls, states = run.recordings["model"].calls, run.recordings["model"].states
    prefill, steps = calls[0], calls[1:]
    cache_name = next((name for name in CACHE_NAMES if steps[0].get(name) is not None), None)
    for call in calls:
        if "encoder_outputs" in call:
            call["encoder_outputs"] = without_details(call["encoder_outputs"])
        add_mask(model, call, cache_name)
        add_decoder_mask(model, call, cache_name)
    decode = steps[0]
    if several:
        decode, several = _merged(model, steps, cache_name)
    if rows is not None:
        prefill, decode = (keep_logits(model, call, rows) for call in (prefill, decode))
    static = _is_static(decode.get(cache_name)) if cache_name else False
    encoder, encoding = submodules.get("encoder"), run.recordings.get("encoder")
    heard = encoding.calls[0] if encoding is not None and encoding.calls else {}
    unmasked = ignores_mask(model, prefill, encoder if heard else None, heard)
    metadata: dict[str, Any] = {
        "cache_argument": cache_name,
        "static": static,
        "max_cache_len": _length(decode[cache_name]) if static and cache_name else None,
        "multi_token_decode": several,
        "ignored": ["attention_mask"] if unmasked else [],
    }
    kept, step = changed(states[1], states[2]), model
    if kept:
        decode = {**decode, "module_state": {state_key(name): states[1][name] for name in kept}}
        step = WithModuleState(model, kept).eval()
    frozen = frozenset() if several else frozenset({"sequence", "query", "decoder_sequence"})
    last = Part("decode", step, decode, static=frozen, full_windows=True)
    composite = composite_parts(model, submodules, run.recordings, prefill)
    if composite is not None:
        metadata |= {"joined": composite.joined, "unread": composite.unread}
        return Split([*composite.parts, last], metadata, _weights(model, run.loose))
    encoders = _encoder_parts(submodules, run)
    loose = _weights(model, run.loose) if encoders else {}
    # One graph does the prompt too, where the prompt is nothing but more tokens.
    given = {name for name, value in prefill.items() if isinstance(value, torch.Tensor)}
    if static and several and not encoders and given <= set(decode):
        return Split([last], metadata, loose)
    first = Part("prefill", step, without_empty_cache(step, prefill, cache_name), full_windows=True)
    return Split([*encoders, first, last], metadata, loose)


def _merged(model: torch.nn.Module, steps: list[dict[str, Any]], cache_name: str | None) -> tuple[dict[str, Any], bool]:
    """The kwargs of two steps in one, and True; those of one step, and False, where the model cannot do two at once."""
    merged = merge_steps(steps[0], steps[1], cache_name)
    if not takes_several(model, merged, steps[1]):
        logger.warning(
            "%s gives other results for several tokens on a cache than for one after the other; "
            "its decode graph takes one token at a time",
            type(model).__name__,
        )
        return steps[0], False
    merged.pop("logits_to_keep", None)  # every position's logits: speculative decoding verifies them all
    return merged, True


def _encoder_parts(submodules: Mapping[str, torch.nn.Module], run: Run) -> list[Part]:
    """What an encoder-decoder model runs once, before its first token."""
    if "encoder" not in submodules or not run.recordings["encoder"].calls:
        return []
    add_mask(submodules["encoder"], run.recordings["encoder"].calls[0], None)
    called = {name: module for name, module in submodules.items() if run.recordings[name].calls}
    return [Part(name, module, largest(run.recordings[name].calls)) for name, module in called.items()]


def _weights(model: torch.nn.Module, names: list[str]) -> dict[str, torch.Tensor]:
    owners = {name: name.rpartition(".") for name in names}
    return {name: getattr(model.get_submodule(path), last).detach() for name, (path, _, last) in owners.items()}


def _is_static(cache: Any) -> bool:
    return bool(getattr(cache, "is_compileable", False)) and _length(cache) is not None


def _length(cache: Any) -> int | None:
    try:
        length = int(cache.get_max_length())
    except (AttributeError, ValueError, TypeError):
        return None
    return length if length > 0 else None
