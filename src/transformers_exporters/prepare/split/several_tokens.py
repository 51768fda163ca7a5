"""Whether a model's forward can go on from a cache with several tokens at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ...hf.outputs import first_tensor
from ..references import is_referenced
from ..shapes_only import run_forward


def takes_several(model: torch.nn.Module, merged: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two tokens at once give the last one the logits that it has in a step of its own.

    Mamba-1 (also inside Jamba and Zamba) starts its scan from zero whenever it gets several tokens, whatever state it has:
    no error, wrong logits. A model without values is taken at its word.

    Args:
        model: The model.
        merged: Kwargs of a step with two tokens.
        second: Kwargs of the second of them alone, on the cache that has seen the first.
    """
    if is_referenced(model):
        return True
    try:
        with torch.no_grad():
            together, alone = first_tensor(run_forward(model, merged)), first_tensor(run_forward(model, second))
    except Exception:  # noqa: BLE001 - whatever the model raises: it takes one token at a time
        return False
    if together is None or alone is None or together.dim() != 3:
        return True
    got, wanted = together[:, -1].float(), alone[:, -1].float()
    tolerance = 5e-5 if together.dtype == torch.float32 else 5e-2
    return bool((got - wanted).abs().max() <= tolerance * wanted.abs().max().clamp(min=1e-3))
