"""Decompose a multimodal model: encoders, projector, token embedding with the merge, language model, head."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any

import torch

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


def composite_parts(
    model: Any,
    submodules: Mapping[str, torch.nn.Module],
    recordings: Mapping[str, Recording],
    prefill: Mapping[str, Any],
) -> list[Part] | None:
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
    parts = [Part(name, called[name], recordings[name].calls[0]) for name in front]
    call = dict(recordings["language_model"].calls[0])
    mask = prefill.get("attention_mask")
    takes_mask = "attention_mask" in inspect.signature(type(called["language_model"]).forward).parameters
    if takes_mask and isinstance(mask, torch.Tensor) and call.get("attention_mask") is None:
        call["attention_mask"] = mask  # `generate` dropped an all-ones mask
    embed = _embed_part(model, called, recordings, prefill, call)
    if embed is None:
        return None
    cache_name = next((name for name in _CACHE_NAMES if name in call), None)
    language = without_empty_cache(called["language_model"], call, cache_name)
    return [
        *parts,
        embed,
        Part("language_model", called["language_model"], language, full_windows=True),
        Part("lm_head", called["lm_head"], recordings["lm_head"].calls[0]),
    ]


def _embed_part(
    model: Any,
    called: Mapping[str, torch.nn.Module],
    recordings: Mapping[str, Recording],
    prefill: Mapping[str, Any],
    call: Mapping[str, Any],
) -> Part | None:
    names = [name for name, value in call.items() if isinstance(value, torch.Tensor)]
    inputs = {name: value for name, value in prefill.items() if name not in _CACHE_NAMES}
    stubs: list[str] = []
    if _ENCODED not in prefill:
        own = [name for name in called if name in projectors(model)]
        stubs = own or [name for name in called if name.endswith("_encoder")]
        inputs["features"] = [result for name in stubs for result in recordings[name].results]
    module = EmbedInputs(model, called["language_model"], [called[name] for name in stubs], names).eval()
    try:
        with torch.no_grad():
            run_forward(module, inputs)
    except Exception as error:  # noqa: BLE001 - a model that reaches its language model another way stays whole
        logger.info("the step before the language model cannot be split off: %s", error)
        return None
    return Part("embed_inputs", module, inputs)
