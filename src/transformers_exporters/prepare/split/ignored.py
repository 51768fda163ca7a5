"""Arguments that a forward takes and does not look at: a caller may pass them, and no graph needs them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import torch

from ...hf.outputs import first_tensor


def ignores_mask(model: torch.nn.Module, call: Mapping[str, Any]) -> bool:
    """Whether an encoder-decoder model that was called without `attention_mask` gives the same with one.

    Whisper does: its feature extractor makes a mask, and its decoder attends to the silence after the sound.

    Args:
        model: The model, in eval mode; False if it has no values.
        call: Kwargs of a forward with `encoder_outputs`.
    """
    encoded = first_tensor(call.get("encoder_outputs"))
    takes = "attention_mask" in inspect.signature(type(model).forward).parameters
    if not takes or encoded is None or call.get("attention_mask") is not None:
        return False
    if any(weight.is_meta for weight in model.parameters()):
        return False
    mask = torch.ones(encoded.shape[:2], dtype=torch.long)
    mask[:, ::2] = 0

    def run(**options: Any) -> torch.Tensor | None:
        kwargs = copy.deepcopy(dict(call))
        states = first_tensor(kwargs["encoder_outputs"])
        assert states is not None
        # Recorded states may be zeros, over which every mask gives the same.
        states.copy_(torch.randn(states.shape, generator=torch.Generator().manual_seed(0)))
        return first_tensor(model(**kwargs, **options))

    try:
        with torch.no_grad():
            without, under = run(), run(attention_mask=mask)
    except Exception:  # noqa: BLE001 - whatever the model raises, it looked at the mask
        return False
    return without is not None and under is not None and torch.equal(without, under)
