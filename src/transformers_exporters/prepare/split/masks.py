"""The masks that `generate` leaves out of a call."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ...hf.steps import DECODER_SIDE, decoder_side


def add_mask(model: torch.nn.Module, call: dict[str, Any], cache_name: str | None) -> None:
    """Give a call an all-ones mask: `generate` drops one, and a graph without it could never run a padded batch.

    Args:
        model: Whose forward is called.
        call: Its kwargs; `attention_mask` int64 [batch, past + queries] is added where the model takes it.
        cache_name: The cache's kwarg.
    """
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


def add_decoder_mask(model: torch.nn.Module, call: dict[str, Any], cache_name: str | None) -> None:
    """Give the decoder of an encoder-decoder model its own mask and positions, where it takes both.

    Such a decoder has prompts of different lengths: Whisper's go on from what was heard before, padded on the left.

    Args:
        model: Whose forward is called.
        call: Its kwargs; `decoder_attention_mask` int64 [batch, past + queries] and `decoder_position_ids` int64
            [batch, queries] are added.
        cache_name: The cache's kwarg.
    """
    parameters = inspect.signature(type(model).forward).parameters
    ids, past = call.get("decoder_input_ids"), _seen(call.get(cache_name)) if cache_name else 0
    if ids is None or ids.dim() != 2 or past is None or not parameters.keys() >= {*DECODER_SIDE}:
        return
    for name, value in zip(DECODER_SIDE, decoder_side(ids, past), strict=True):
        if call.get(name) is None:
            call[name] = value


def _seen(cache: Any) -> int | None:
    """How many positions a cache has seen, or None if it does not count them (a recurrent state)."""
    if cache is None:
        return 0
    try:
        return int(cache.get_seq_length())
    except (AttributeError, ValueError):
        return None
