"""Find the submodules that a composite model generates with, by the accessors that every model has."""

from __future__ import annotations

from typing import Any

import torch

_MODALITIES = ("image", "audio", "video")
# Where models keep the step from an encoder's features to the language model's width.
_PROJECTORS = ("multi_modal_projector", "connector", "embed_vision", "embed_audio")


def encoders(model: Any) -> dict[str, torch.nn.Module]:
    """`{"image_encoder": ..., "audio_encoder": ...}`, as far as `get_encoder(modality=...)` knows them.

    A video encoder is one only where videos have their own.
    """
    found: dict[str, torch.nn.Module] = {}
    for modality in _MODALITIES:
        try:
            module = model.get_encoder(modality=modality)
        except (AttributeError, TypeError, ValueError):
            continue
        if modality == "video":
            module = getattr(getattr(model, "base_model", model), "video_tower", module)
        if _is_part(model, module) and all(module is not other for other in found.values()):
            found[f"{modality}_encoder"] = module
    return found


def projectors(model: Any) -> dict[str, torch.nn.Module]:
    """The projectors that the model exposes under one of the known names."""
    found: dict[str, torch.nn.Module] = {}
    for owner in (model, getattr(model, "base_model", model)):
        for name in _PROJECTORS:
            module = getattr(owner, name, None)
            if isinstance(module, torch.nn.Module):
                found.setdefault(name, module)
    return found


def decoder(model: Any) -> torch.nn.Module | None:
    """The language model inside a composite model, or None."""
    module = model.get_decoder()
    return module if _is_part(model, module) else None


def head(model: Any) -> torch.nn.Module | None:
    """The module from hidden states to logits, or None."""
    for module in (getattr(model, "lm_head", None), model.get_output_embeddings()):
        if isinstance(module, torch.nn.Module):
            return module
    return None


def text_encoder(model: Any) -> torch.nn.Module | None:
    """The encoder of an encoder-decoder model, or None."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return None
    module = model.get_encoder()
    return module if _is_part(model, module) else None


def generation_parts(model: Any) -> dict[str, torch.nn.Module]:
    """The parts of a composite or encoder-decoder model, by component name; none for a model that is one graph."""
    text = text_encoder(model)
    found = {name: module for name, module in encoders(model).items() if module is not text}
    if text is not None:
        if not found:
            return {"encoder": text}
        # Text and image meet before the encoder, in the model's own `generate`.
        return {**found, **projectors(model), "embed_tokens": model.get_input_embeddings(), "encoder": text}
    inner, logits = decoder(model), head(model)
    if not found or inner is None or logits is None:
        return {}
    return {**found, **projectors(model), "language_model": inner, "lm_head": logits}


def _is_part(model: Any, module: Any) -> bool:
    own = (model, getattr(model, "base_model", model))
    return isinstance(module, torch.nn.Module) and all(module is not whole for whole in own)
