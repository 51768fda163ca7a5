"""Decompose a multimodal model: encoders, projector, token embedding with the merge, language model, head."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..record import Part
from .embed_step import embed_step
from .empty_cache import without_empty_cache
from .record_calls import Recording

_CACHE_NAMES = ("cache", "past_key_values", "cache_params")


@dataclass(frozen=True)
class Composite:
    """The components of a multimodal prefill.

    Attributes:
        parts: In the order in which they run.
        joined: Paths of what has one tensor, or one item of a tensor, an image, and that `embed_inputs` takes as one.
        unread: Paths of what encoders return and `embed_inputs` does not take.
    """

    parts: list[Part]
    joined: list[str]
    unread: list[str]


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
    step = embed_step(model, called, recordings, prefill, call)
    if step is None:
        return None
    call.update(step.results)
    cache_name = next((name for name in _CACHE_NAMES if name in call), None)
    language = without_empty_cache(called["language_model"], call, cache_name)
    last = [
        Part("language_model", called["language_model"], language, full_windows=True),
        Part("lm_head", called["lm_head"], _of_several_rows(recordings["lm_head"].calls[0])),
    ]
    return Composite([*parts, step.part, *last], step.joined, step.unread)


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
