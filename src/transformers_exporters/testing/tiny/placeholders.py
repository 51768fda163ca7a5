"""Text with as many placeholder tokens as the model's image or audio tower yields vectors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from .tensors import PADDING, TEXT, Layout, ids, setting

# Medium, the inputs that carry it, the method of the model that encodes it, and the config's names of the placeholder.
_MEDIA = (
    ("image", ("pixel_values",), "get_image_features", ("image_token_id", "image_token_index", "media_token_id")),
    (
        "audio",
        ("input_features", "input_values", "audio_values"),
        "get_audio_features",
        ("audio_token_id", "audio_token_index", "audio_placeholder_token_id", "speech_token_id"),
    ),
)
_START = ("vision_start_token_id", "image_start_token_id", "boi_token_id")


def with_placeholders(model: PreTrainedModel, inputs: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """`inputs` with `input_ids` and its masks rewritten, where the model mixes other media into its text.

    Each row becomes: padding or text, the start token where the config has one, the placeholders, text.
    """
    if "input_ids" not in inputs:
        return inputs
    parts: list[torch.Tensor] = []
    kinds: list[torch.Tensor] = []
    for at, (_, carriers, method, tokens) in enumerate(_MEDIA, start=1):
        token = setting(model, *tokens)
        if not isinstance(token, int) or not any(carrier in inputs for carrier in carriers):
            continue
        count = _vectors(model, method, inputs)
        if not count:
            continue
        start = setting(model, *_START) if at == 1 else None
        row = ([start] if isinstance(start, int) else []) + [token] * (count // layout.batch)
        parts.append(torch.tensor(row).expand(layout.batch, -1))
        kinds.append(torch.tensor([at if one == token else 0 for one in row]).expand(layout.batch, -1))
    if not parts:
        return inputs
    return {**inputs, **_mixed(model, inputs, layout, parts, kinds)}


def _mixed(
    model: PreTrainedModel,
    inputs: dict[str, Any],
    layout: Layout,
    parts: list[torch.Tensor],
    kinds: list[torch.Tensor],
) -> dict[str, Any]:
    before, after = ids(model, layout.batch, PADDING + 2), ids(model, layout.batch, TEXT - PADDING - 2)
    mixed: dict[str, Any] = {"input_ids": torch.cat([before, *parts, after], dim=1)}
    kind = torch.cat([torch.zeros_like(before), *kinds, torch.zeros_like(after)], dim=1)
    parameters = inspect.signature(type(model).forward).parameters
    if "attention_mask" in inputs:
        mixed["attention_mask"] = torch.ones_like(mixed["input_ids"])
        if layout.padded:
            mixed["attention_mask"][-1, :PADDING] = 0
    if "mm_token_type_ids" in parameters:
        mixed["mm_token_type_ids"] = kind
    if "cross_attention_mask" in inputs:
        mask = inputs["cross_attention_mask"]
        mixed["cross_attention_mask"] = mask[:, :1].expand(-1, mixed["input_ids"].shape[1], *mask.shape[2:]).clone()
    return mixed


def _vectors(model: PreTrainedModel, method: str, inputs: dict[str, Any]) -> int:
    """How many vectors the tower gives for all rows together; 0 where the model has no such method."""
    encode = next((getattr(module, method) for module in model.modules() if hasattr(module, method)), None)
    if encode is None:
        return 0
    accepted = inspect.signature(encode).parameters
    with torch.no_grad():
        features = encode(**{name: value for name, value in inputs.items() if name in accepted and name != "input_ids"})
    return _count(features)


def _count(features: Any) -> int:
    if isinstance(features, Mapping):
        features = features.get("pooler_output", next(iter(features.values())))
    if isinstance(features, list | tuple):
        return sum(_count(one) for one in features)
    return int(features.numel() // features.shape[-1])
