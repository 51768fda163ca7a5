"""Decompose a multimodal model: encoders, projector, token embedding with the merge, language model, head."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from ...hf.joined import joined, tensor_lists
from ...hf.pytrees import holds_tensors
from ...hf.submodules import projectors
from ..record import Part
from ..shapes_only import run_forward
from .embed_inputs import EmbedInputs
from .empty_cache import without_empty_cache
from .record_calls import Recording

logger = logging.getLogger(__name__)

_CACHE_NAMES = ("cache", "past_key_values", "cache_params")
# generate() may run the encoders itself and hand their features to forward under this name.
_ENCODED = "mm_encoder_outputs"


@dataclass(frozen=True)
class Composite:
    """The components of a multimodal prefill.

    Attributes:
        parts: In the order in which they run.
        joined: Paths of lists with one tensor an image that `embed_inputs` takes as one tensor.
    """

    parts: list[Part]
    joined: list[str]


def composite_parts(
    model: Any,
    submodules: Mapping[str, torch.nn.Module],
    recordings: Mapping[str, Recording],
    prefill: Mapping[str, Any],
) -> Composite | None:
    """The components of a multimodal prefill, or None where `generate` ran no encoder and language model apart.

    Args:
        model: The composite model.
        submodules: Its parts by component name.
        recordings: What each part was called with.
        prefill: Kwargs of the model's own first forward.
    """
    called = {name: module for name, module in submodules.items() if recordings[name].calls}
    front = [name for name in called if name not in ("language_model", "lm_head")]
    if "language_model" not in called or "lm_head" not in called or not any(n.endswith("_encoder") for n in front):
        return None
    parts = [Part(name, called[name], largest(recordings[name].calls)) for name in front]
    call = dict(recordings["language_model"].calls[0])
    mask = prefill.get("attention_mask")
    takes_mask = "attention_mask" in inspect.signature(type(called["language_model"]).forward).parameters
    if takes_mask and isinstance(mask, torch.Tensor) and call.get("attention_mask") is None:
        call["attention_mask"] = mask  # `generate` dropped an all-ones mask
    step = _embed_part(model, called, recordings, prefill, call)
    if step is None:
        return None
    embed, lists = step
    cache_name = next((name for name in _CACHE_NAMES if name in call), None)
    language = without_empty_cache(called["language_model"], call, cache_name)
    last = [
        Part("language_model", called["language_model"], language, full_windows=True),
        Part("lm_head", called["lm_head"], _of_several_rows(recordings["lm_head"].calls[0])),
    ]
    return Composite([*parts, embed, *last], lists)


def largest(calls: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The call with the most numbers: a module that saw an image and a video has fewer axes of size 1 in the larger."""
    return max(calls, key=lambda call: sum(leaf.numel() for leaf in pytree.tree_leaves(dict(call)) if _is_tensor(leaf)))


def _of_several_rows(call: Mapping[str, Any]) -> dict[str, Any]:
    """The head's call for two positions: one would freeze the axis, and the caller chooses how many logits it wants."""
    return {
        name: value.repeat_interleave(2, dim=1)
        if _is_tensor(value) and value.dim() == 3 and value.shape[1] == 1
        else value
        for name, value in call.items()
    }


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _embed_part(
    model: Any,
    called: Mapping[str, torch.nn.Module],
    recordings: Mapping[str, Recording],
    prefill: Mapping[str, Any],
    call: Mapping[str, Any],
) -> tuple[Part, list[str]] | None:
    names = [name for name, value in call.items() if name not in _CACHE_NAMES and holds_tensors(value)]
    inputs = {name: value for name, value in prefill.items() if name not in _CACHE_NAMES}
    stubs: list[str] = []
    if _ENCODED not in prefill:
        own = [name for name in called if name in projectors(model)]
        stubs = own or [name for name in called if name.endswith("_encoder")]
        inputs["features"] = [result for name in stubs for result in recordings[name].results]
    module = EmbedInputs(model, called["language_model"], [called[name] for name in stubs], names).eval()
    try:
        with torch.no_grad():
            wanted = run_forward(module, inputs)
    except Exception as error:  # noqa: BLE001 - a model that reaches its language model another way stays whole
        logger.info("the step before the language model cannot be split off: %s", error)
        return None
    lists = [path for path in tensor_lists(inputs) if _only_joins(module, inputs, path, wanted)]
    return Part("embed_inputs", module, joined(inputs, lists)), lists


def _only_joins(module: torch.nn.Module, inputs: Mapping[str, Any], path: str, wanted: Any) -> bool:
    """Whether a list's tensors are only joined by the model: however its rows are cut, the result is the same."""
    leaves = pytree.tree_leaves(wanted)
    for pieces in (1, 2):
        try:
            with torch.no_grad():
                result = pytree.tree_leaves(run_forward(module, joined(inputs, [path], pieces)))
        except Exception as error:  # noqa: BLE001 - whatever the model raises: it looks at the list's length
            logger.debug("%s is taken as it is: %s", path, error)
            return False
        if len(result) != len(leaves) or not all(_equal(a, b) for a, b in zip(result, leaves, strict=True)):
            return False
    return True


def _equal(first: Any, second: Any) -> bool:
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return first == second
    return first.shape == second.shape and (first.is_meta or torch.equal(first, second))
