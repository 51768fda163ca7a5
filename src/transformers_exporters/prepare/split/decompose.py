"""Find a model's generation components by running `generate` once and recording its forwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from ...errors import UnsupportedModelError
from ...hf.cache_layers import full_windows
from ...hf.pytrees import register_known_caches, register_objects_in
from ..flags import make_traceable, refuse_losses
from ..prepare import check_inputs
from ..record import Part
from ..references import is_referenced
from ..shapes_only import run_forward, without_values
from ..untouched import untouched
from .merge import merge_steps
from .record_calls import recorded, run_generate

logger = logging.getLogger(__name__)

_CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")


@dataclass(frozen=True)
class Split:
    """A model's generation components, and how to drive them.

    Attributes:
        parts: The components in the order in which generation runs them.
        metadata: For the manifest: `cache_argument`, `static`, `max_cache_len`, `multi_token_decode`.
    """

    parts: list[Part]
    metadata: dict[str, Any] = field(default_factory=dict)


def decompose_for_generation(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    generation_config: Any = None,
    multi_token_decode: bool = False,
) -> dict[str, tuple[torch.nn.Module, dict[str, Any]]]:
    """The submodules that generation runs, each with the forward kwargs that it was given.

    `model.generate(**inputs)` runs once for two tokens (three with `multi_token_decode`); the model, its config and the
    inputs stay as they were.

    Args:
        model: A model with `generate`.
        inputs: Generate kwargs; small representative values suffice.
        generation_config: Used for the run; `cache_implementation="static"` gives a fixed-size cache.
        multi_token_decode: Merge two decode steps into one call with two query tokens.

    Returns:
        `{component name: (submodule, forward kwargs)}`; run `submodule(**kwargs)` on a copy of the kwargs, since a
        forward writes into its cache.

    Raises:
        UnsupportedModelError: If the model cannot generate, or its `generate` runs no forward.
    """
    split = split_for_generation(
        model, inputs, generation_config=generation_config, multi_token_decode=multi_token_decode
    )
    return {part.name: (part.model, dict(part.inputs)) for part in split.parts}


def split_for_generation(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    *,
    generation_config: Any = None,
    multi_token_decode: bool = False,
    read_values: bool = False,
) -> Split:
    """Like `decompose_for_generation`, as records for the pipeline.

    Args:
        model: See there.
        inputs: See there.
        generation_config: See there.
        multi_token_decode: See there.
        read_values: Record real values also where the weights are only referenced; a trace needs none, a comparison does.
    """
    if not hasattr(model, "generate"):
        raise UnsupportedModelError(f"{type(model).__name__} has no generate method; use export or export_model.")
    check_inputs(inputs)
    refuse_losses(inputs)
    with untouched(model), full_windows():
        make_traceable(model, experts=None)
        needed = 3 if multi_token_decode else 2
        calls = _record(model, inputs, needed, generation_config, read_values)
        if len(calls) < needed:
            raise UnsupportedModelError(
                f"{type(model).__name__}.generate ran forward {len(calls)} times for {needed} tokens; "
                "export its parts with export instead."
            )
        prefill, steps = calls[0], calls[1:]
        cache_name = next((name for name in _CACHE_NAMES if steps[0].get(name) is not None), None)
        for call in calls:
            _add_mask(model, call, cache_name)
        decode = merge_steps(steps[0], steps[1], cache_name) if multi_token_decode else steps[0]
        if multi_token_decode:
            decode.pop("logits_to_keep", None)  # every position's logits: speculative decoding verifies them all
        static = _is_static(decode.get(cache_name)) if cache_name else False
        prefill = _without_empty_cache(model, prefill, cache_name)
    metadata = {
        "cache_argument": cache_name,
        "static": static,
        "max_cache_len": _length(decode[cache_name]) if static and cache_name else None,
        "multi_token_decode": multi_token_decode,
    }
    frozen = frozenset() if multi_token_decode else frozenset({"sequence", "query"})
    decode_part = Part("decode", model, decode, static=frozen, full_windows=True)
    if static and multi_token_decode:
        return Split([decode_part], metadata)
    return Split([Part("prefill", model, prefill, full_windows=True), decode_part], metadata)


def _record(
    model: torch.nn.Module, inputs: Mapping[str, Any], tokens: int, generation_config: Any, read_values: bool
) -> list[Any]:
    """The forwards of one `generate`; without reading the weights where they are only referenced."""
    if is_referenced(model) and not read_values:
        try:
            with without_values(model), recorded(model, shapes_only=True) as calls:
                run_generate(model, inputs, tokens, generation_config)
            return calls
        except Exception as error:  # noqa: BLE001 - a step that needs values: whatever op meets the meta device first
            logger.info("generate needs the weights' values (%s); reading them", error)
    with recorded(model) as calls:
        run_generate(model, inputs, tokens, generation_config)
    return calls


def _add_mask(model: torch.nn.Module, call: dict[str, Any], cache_name: str | None) -> None:
    """`generate` drops an all-ones mask; a graph without a mask input could never run a padded batch."""
    parameters = inspect.signature(type(model).forward).parameters
    ids = call.get("input_ids", call.get("inputs_embeds"))
    if "attention_mask" not in parameters or call.get("attention_mask") is not None or ids is None:
        return
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
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


def _without_empty_cache(model: torch.nn.Module, call: dict[str, Any], cache_name: str | None) -> dict[str, Any]:
    """Leave out a cache that holds nothing yet, where the model makes the same one by itself."""
    cache = call.get(cache_name) if cache_name else None
    if cache is None or any(isinstance(leaf, torch.Tensor) for leaf in _leaves(cache)):
        return call
    shorter = {name: value for name, value in call.items() if name != cache_name}
    with torch.no_grad():
        before = run_forward(model, call)
        try:
            after = run_forward(model, shorter)
        except Exception:  # noqa: BLE001 - whatever the model raises without a cache: it needs one
            return call
    same = len(_leaves(before)) == len(_leaves(after))
    return shorter if same else call


def _leaves(value: Any) -> list[Any]:
    register_known_caches()
    register_objects_in(value)
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _is_static(cache: Any) -> bool:
    return bool(getattr(cache, "is_compileable", False)) and _length(cache) is not None


def _length(cache: Any) -> int | None:
    try:
        length = int(cache.get_max_length())
    except (AttributeError, ValueError, TypeError):
        return None
    return length if length > 0 else None
