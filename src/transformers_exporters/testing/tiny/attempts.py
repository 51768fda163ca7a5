"""Which parameters of a forward to pass, and in which layout: what is tried, likeliest first."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from transformers import PreTrainedModel

from .tensors import Layout

#: Optional parameters that a forward wants although its signature gives them a default; passed when it has them.
_WANTED = (
    "decoder_input_ids",
    "bbox",
    "image_grid_thw",
    "image_sizes",
    "spatial_shapes",
    "pixel_attention_mask",
    "image_position_ids",
    "pixel_position_ids",
    "aspect_ratio_ids",
    "aspect_ratio_mask",
    "cross_attention_mask",
    "task_inputs",
    "image_attention_mask",
    "image_merge_sizes",
    "qformer_input_ids",
    "visual_feats",
    "visual_pos",
    "patch_offsets",
)
_MAIN_TEXT = ("input_ids", "attention_mask")
_IMAGE = ("pixel_values", "flattened_patches")
_AUDIO = ("input_features", "input_values", "audio_values")
#: The inputs that carry a picture, a film or a sound.
MEDIA = (*_IMAGE, *_AUDIO, "pixel_values_videos")


def attempts(model: PreTrainedModel) -> Iterator[tuple[list[str], Layout]]:
    """Which inputs to pass, and in which layout, likeliest first."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(type(model).forward).parameters.items()
        if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    for names in _choices(model, parameters):
        for layout in _layouts(names):
            yield names, layout


def _choices(model: PreTrainedModel, parameters: dict[str, inspect.Parameter]) -> Iterator[list[str]]:
    required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    main = getattr(model, "main_input_name", "input_ids")
    main = [main] if main in parameters else []
    wanted = [name for name in _WANTED if name in parameters]
    if not model.config.is_encoder_decoder and "decoder_input_ids" in wanted and "decoder_input_ids" not in required:
        wanted.remove("decoder_input_ids")
    text = [name for name in _MAIN_TEXT if name in parameters] if "input_ids" in parameters else []
    media = [name for name in (*_IMAGE, *_AUDIO) if name in parameters]
    image = [name for name in _IMAGE if name in parameters]
    no_image = {"image_grid_thw", "image_sizes", "spatial_shapes", "pixel_attention_mask", "aspect_ratio_ids"}
    no_image |= {"image_position_ids", "pixel_position_ids", "aspect_ratio_mask", "cross_attention_mask"}
    plain = [name for name in wanted if name not in no_image]
    if main and main[0] != "input_ids":
        options = [
            main + required + wanted,
            main + required + plain,
            main + required + text + wanted,
            text + media + required + wanted,
            main + required,
            text + required + plain,
        ]
    else:
        options = [
            text + image + main + required + wanted if image else text + media + main + required + wanted,
            text + media + main + required + wanted,
            text + media + main + required + plain,
            text + image + main + required,
            text + main + required + plain,
            [name for name in text + main + required + plain if name != "attention_mask"],
            [name for name in text + image + main + required + wanted if name != "attention_mask"],
            image + required + wanted,
            main + required,
            required,
            required + [name for name in parameters if re.search(r"embeds$|hidden_states$", name)][:1],
        ]
        if not image and media:
            options.insert(0, text + main + required + plain)
    masks = [name for name in ("input_features_mask", "feature_attention_mask", "padding_mask") if name in parameters]
    if masks:
        options += [option + masks for option in options]
    seen: set[tuple[str, ...]] = set()
    for option in options:
        names = tuple(dict.fromkeys(option))
        if names and names not in seen:
            seen.add(names)
            yield list(names)


def _layouts(names: list[str]) -> Iterator[Layout]:
    """The layouts that make a difference for these inputs."""
    has_image = any(name in ("pixel_values", "pixel_values_videos") for name in names)
    has_audio = any(name in _AUDIO for name in names)
    yield Layout()
    if has_image:
        yield Layout(image="stacked")
        yield Layout(image="pair")
        yield Layout(image="patches")
        yield Layout(image="flat")
        yield Layout(image="tiles")
    if has_audio:
        yield Layout(audio="time_first")
        yield Layout(audio="channel")
    if "attention_mask" in names:
        yield Layout(padded=False)
    if not has_image and not has_audio:
        yield Layout(batch=1, padded=False)
