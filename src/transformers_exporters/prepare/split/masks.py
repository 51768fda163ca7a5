"""The mask that `generate` leaves out of a call."""

from __future__ import annotations

import inspect
from typing import Any

import torch


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


def _seen(cache: Any) -> int | None:
    """How many positions a cache has seen, or None if it does not count them (a recurrent state)."""
    if cache is None:
        return 0
    try:
        return int(cache.get_seq_length())
    except (AttributeError, ValueError):
        return None
