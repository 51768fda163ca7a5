"""Small representative inputs for a checkpoint, made from its config and the signature of its forward."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ..errors import UnsupportedModelError

# Odd lengths that no config is likely to hold, so that no axis looks like a constant of the model.
_LENGTH, _DECODER_LENGTH, _AUDIO_SECONDS = 11, 7, 1


def sample_inputs(model: Any, task: str = "forward", *, batch: int = 2) -> dict[str, torch.Tensor]:
    """Inputs that `model(**inputs)` or `model.generate(**inputs)` takes.

    Which kinds are needed is read from `main_input_name` and from the parameters of `forward`; sizes from the config and
    its sub-configs. Ids are random and hold no special token; the last row of a text batch is left-padded.

    Args:
        model: A `PreTrainedModel`; its weights are not read.
        task: `"forward"` or `"generation"`.
        batch: Number of rows.

    Raises:
        UnsupportedModelError: If the model's main input is of a kind that is not known here.
    """
    parameters = set(inspect.signature(type(model).forward).parameters)
    main = getattr(model, "main_input_name", "input_ids")
    makers = {
        "input_ids": _text,
        "pixel_values": _image,
        "input_features": _features,
        "input_values": _waveform,
    }
    if main not in makers:
        raise UnsupportedModelError(
            f"{type(model).__name__} takes {main!r}, for which no sample can be made: export it with the Python API and "
            "inputs of yours."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inputs = makers[main](model, batch)
        if main == "input_ids" and task == "forward" and _tells_texts_apart(model):
            inputs["token_type_ids"] = torch.randint(2, inputs["input_ids"].shape)
        if "decoder_input_ids" in parameters and task == "forward":
            inputs["decoder_input_ids"] = _ids(model, batch, _DECODER_LENGTH)
    return {name: value for name, value in inputs.items() if name in parameters or name == main}


def _text(model: Any, batch: int) -> dict[str, torch.Tensor]:
    mask = torch.ones(batch, _LENGTH, dtype=torch.int64)
    mask[-1, : 3 if batch > 1 else 0] = 0
    return {"input_ids": _ids(model, batch, _LENGTH), "attention_mask": mask}


def _tells_texts_apart(model: Any) -> bool:
    """Whether pairs of texts (rerankers, entailment) come with `token_type_ids`: both model and tokenizer know them."""
    if _setting(model.config, "type_vocab_size", 0) < 2:
        return False
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model.config.name_or_path, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError):
        return True  # no tokenizer here that would say otherwise
    return "token_type_ids" in tokenizer.model_input_names


def _ids(model: Any, batch: int, length: int) -> torch.Tensor:
    vocabulary = _setting(model.config, "vocab_size", 1000)
    first = min(16, vocabulary // 4)
    special = {
        value for name, value in vars(model.config).items() if name.endswith("token_id") and isinstance(value, int)
    }
    usable = torch.tensor([token for token in range(first, min(vocabulary, 5000)) if token not in special])
    return usable[torch.randint(len(usable), (batch, length))]


def _image(model: Any, batch: int) -> dict[str, torch.Tensor]:
    size = _setting(model.config, "image_size", 224)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = _setting(model.config, "num_channels", 3)
    return {"pixel_values": torch.randn(batch, channels, height, width)}


def _features(model: Any, batch: int) -> dict[str, torch.Tensor]:
    """Mel frames, as many as an encoder with learned positions wants (it halves them), else two seconds' worth."""
    bins = _setting(model.config, "num_mel_bins", _setting(model.config, "feature_size", 80))
    positions = _setting(model.config, "max_source_positions", None)
    return {"input_features": torch.randn(batch, bins, 2 * positions if positions else 200)}


def _waveform(model: Any, batch: int) -> dict[str, torch.Tensor]:
    rate = _setting(model.config, "sampling_rate", 16_000)
    return {"input_values": torch.randn(batch, rate * _AUDIO_SECONDS)}


def _setting(config: Any, name: str, default: Any) -> Any:
    """A field of the config, or of the first sub-config that has it."""
    if getattr(config, name, None) is not None:
        return getattr(config, name)
    for value in vars(config).values():
        if hasattr(value, "to_dict") and getattr(value, name, None) is not None:
            return getattr(value, name)
    return default
