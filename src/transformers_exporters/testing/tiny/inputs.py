"""Sample inputs that a tiny model's own forward accepts: made by the names in its signature, then tried."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedModel

from .complaint import Complaint, complaint_of
from .described import tensor_for
from .mending import mended
from .placeholders import with_placeholders
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
#: Choices of inputs that are mended, and how many changed inputs are tried for each.
_MOST_MENDED, _MOST_STEPS = 3, 24
_MAIN_TEXT = ("input_ids", "attention_mask")
_IMAGE = ("pixel_values", "flattened_patches")
_AUDIO = ("input_features", "input_values", "audio_values")


def working_inputs(model: PreTrainedModel) -> dict[str, Any]:
    """Keywords of `model.forward` for two rows of different content, which ran through it once without a NaN.

    Args:
        model: In eval mode, on the CPU.

    Raises:
        Exception: The error of the first attempt, if none of the attempts runs.
    """
    first: Exception | None = None
    refused: dict[tuple[str, ...], tuple[dict[str, Any], Layout, Complaint]] = {}
    for names, layout in _attempts(model):
        inputs: dict[str, Any] = {}
        try:
            inputs = {name: tensor_for(name, model, layout) for name in names}
            inputs = with_placeholders(model, inputs, layout)
            _run(model, inputs)
        except Exception as problem:  # noqa: BLE001 -- any error of the model's code says that these are not its inputs
            if inputs:
                refused.setdefault(tuple(names), (inputs, layout, complaint_of(problem)))
            if first is None:
                first = problem  # with its traceback, from which the caller reads what the model lacks
            else:
                problem.__traceback__ = None
        else:
            return inputs
    for inputs, layout, complaint in itertools.islice(refused.values(), _MOST_MENDED):
        answer = _mended(model, inputs, layout, complaint)
        if answer is not None:
            return answer
    raise first or ValueError("its forward takes no tensors")


def _mended(
    model: PreTrainedModel, inputs: dict[str, Any], layout: Layout, complaint: Complaint
) -> dict[str, Any] | None:
    """`inputs` changed step by step after what the forward says about them, depth first; None where that leads nowhere.

    A step counts when the forward complains about something that it did not complain about before.
    """
    seen, tried = {complaint.message}, {_shapes(inputs)}
    waiting = [mended(model, inputs, layout, complaint)]
    for _ in range(_MOST_STEPS):
        while waiting and (candidate := next(waiting[-1], None)) is None:
            waiting.pop()
        if not waiting or candidate is None:
            return None
        if _shapes(candidate) in tried:
            continue
        tried.add(_shapes(candidate))
        try:
            _run(model, candidate)
        except Exception as problem:  # noqa: BLE001 -- as above
            heard = complaint_of(problem)
            if heard.message not in seen:
                seen.add(heard.message)
                waiting.append(mended(model, candidate, layout, heard))
        else:
            return candidate
    return None


def _shapes(inputs: dict[str, Any]) -> str:
    return repr([(name, *map(_form, _tensors(value))) for name, value in inputs.items()])


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    content = None if tensor.is_floating_point() else int(tensor.sum())
    return tuple(tensor.shape), str(tensor.dtype), content


def _run(model: PreTrainedModel, inputs: dict[str, Any]) -> None:
    with torch.no_grad():
        outputs = model(**inputs)
    tensors = list(_tensors(outputs))
    if not tensors:
        raise ValueError("its forward returns no tensor for these inputs")
    if any(tensor.is_floating_point() and bool(torch.isnan(tensor).any()) for tensor in tensors):
        raise ValueError("its forward gives NaN with random weights")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _tensors(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _tensors(inner)


def _attempts(model: PreTrainedModel) -> Iterator[tuple[list[str], Layout]]:
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
