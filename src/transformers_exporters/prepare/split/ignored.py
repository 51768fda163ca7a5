"""Arguments that a forward takes and does not look at: a caller may pass them, and no graph needs them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.overrides import TorchFunctionMode

from ...hf.outputs import first_tensor
from ..shapes_only import to_device, without_values


def ignores_mask(
    model: torch.nn.Module,
    call: Mapping[str, Any],
    encoder: torch.nn.Module | None = None,
    encoding: Mapping[str, Any] | None = None,
) -> bool:
    """Whether an encoder-decoder model that was called without `attention_mask` gives the same with one.

    Whisper does: its feature extractor makes a mask, and its decoder attends to the silence after the sound. Moonshine's
    decoder does, and its encoder does not.

    Args:
        model: The model, in eval mode; False if it has no values.
        call: Kwargs of a forward with `encoder_outputs`.
        encoder: What made these.
        encoding: Its kwargs.
    """
    encoded = first_tensor(call.get("encoder_outputs"))
    if not _takes_mask(model) or encoded is None or call.get("attention_mask") is not None:
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
    if without is None or under is None or not torch.equal(without, under):
        return False
    return encoder is None or not _takes_mask(encoder) or not _looks_at_mask(encoder, encoding or {})


class _Watching(TorchFunctionMode):
    """Notes whether any function of torch is given a tensor."""

    def __init__(self, watched: torch.Tensor) -> None:
        super().__init__()
        self.watched = watched
        self.seen = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen = self.seen or any(leaf is self.watched for leaf in pytree.tree_leaves((args, kwargs)))
        return func(*args, **(kwargs or {}))


def _looks_at_mask(encoder: torch.nn.Module, call: Mapping[str, Any]) -> bool:
    """Whether an encoder does anything with `attention_mask`; it runs for its shapes alone."""
    inputs = to_device({name: value for name, value in call.items() if name != "attention_mask"}, "meta")
    given = first_tensor(inputs)
    if given is None:
        return True
    mask = torch.ones(given.shape[0], given.shape[-1], dtype=torch.long, device="meta")
    try:
        with torch.no_grad(), without_values(encoder), _Watching(mask) as watching:
            encoder(**inputs, attention_mask=mask)
    except Exception:  # noqa: BLE001 - whatever the encoder raises, it looked at the mask
        return True
    return watching.seen


def _takes_mask(module: torch.nn.Module) -> bool:
    return "attention_mask" in inspect.signature(type(module).forward).parameters
