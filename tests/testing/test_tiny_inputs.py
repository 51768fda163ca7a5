"""Inputs that no rule by name makes: from the docstring, and after what the forward said about the ones it refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transformers_exporters.testing import tiny_model
from transformers_exporters.testing.tiny.complaint import Complaint, complaint_of
from transformers_exporters.testing.tiny.described import axis_size, described_shape
from transformers_exporters.testing.tiny.mending import mended
from transformers_exporters.testing.tiny.tensors import DECODER, TEXT, Layout

# Type, an input that only its docstring describes or only its complaint asks for, and its shape.
ASKED_FOR = {
    "idefics2_perceiver": ("context", (2, TEXT, 64)),
    "granite_speech5_ctc": ("input_features", (2, 80, 320)),
    "jev": ("question_type_ids", None),
    "gemma4_unified_assistant": ("shared_kv_states", None),
    "granite_docling": ("pixel_values", (2, 3, 64, 64)),
    "dia_decoder": ("encoder_hidden_states", None),
    "deepseek_ocr2_encoder": ("num_patches", None),
    "fastspeech2_conformer_hifigan": ("spectrogram", None),
}


@pytest.mark.parametrize("model_type", ASKED_FOR)
def test_inputs_of_unknown_names_are_made(model_type: str) -> None:
    name, shape = ASKED_FOR[model_type]
    try:
        model, inputs = tiny_model(model_type)
    except Exception as missing:  # an older transformers
        if "knows no model type" not in str(missing):
            raise
        pytest.skip(str(missing))
    assert name in inputs
    assert shape is None or tuple(inputs[name].shape) == shape
    with torch.no_grad():
        model(**inputs)


def test_a_docstring_gives_the_shape() -> None:
    model, _ = tiny_model("llama")
    assert described_shape("input_ids", model, Layout()) == (2, TEXT)
    assert described_shape("inputs_embeds", model, Layout()) == (2, TEXT, model.config.hidden_size)
    assert described_shape("no_such_input", model, Layout()) is None


@pytest.mark.parametrize(
    ("axis", "length"),
    [("batch_size", 2), ("4", 4), ("config.vocab_size", 128), ("target_length", DECODER), ("num_patches", TEXT)],
)
def test_the_name_of_an_axis_gives_its_length(axis: str, length: int) -> None:
    assert axis_size(axis, tiny_model("llama")[0], Layout()) == length


def _raised(error: Exception) -> Complaint:
    try:
        raise error
    except type(error) as problem:
        return complaint_of(problem)


@pytest.mark.parametrize(
    ("message", "pairs"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (160x100 and 320x64)", ((100, 320),)),
        (
            "Given groups=1, weight of size [4, 1, 7], expected input[2, 11, 14] to have 1 channels, but got 11 channels",
            ((11, 1),),
        ),
        (
            "The size of tensor a (100) must match the size of tensor b (560) at non-singleton dimension 2",
            ((100, 560), (560, 100)),
        ),
        ("hidden_size_per_layer_input must be 0, got 256", ((256, 0),)),
        ("nothing to see", ()),
    ],
)
def test_sizes_in_a_message(message: str, pairs: tuple[tuple[int, int], ...]) -> None:
    assert _raised(RuntimeError(message)).pairs == pairs


def test_what_is_none_in_the_line_that_raised_is_added() -> None:
    model, inputs = tiny_model("mixtral")
    del inputs["input_ids"]
    with pytest.raises(ValueError, match="exactly one of") as caught:
        model(**inputs)
    heard = complaint_of(caught.value)
    assert set(heard.nothing) >= {"input_ids", "inputs_embeds"}
    added = [set(one) - set(inputs) for one in mended(model, inputs, Layout(), heard)]
    assert {"input_ids"} in added and {"inputs_embeds"} in added


def test_a_refused_length_is_changed_alone_and_then_everywhere() -> None:
    inputs: dict[str, Any] = {"input_features": torch.zeros(2, 8, 100), "input_features_mask": torch.ones(2, 100)}
    model, _ = tiny_model("llama")
    heard = _raised(ValueError("The number of frames (100) must be a multiple of the factor (8)"))
    shapes = [
        {name: tuple(value.shape) for name, value in one.items()} for one in mended(model, inputs, Layout(), heard)
    ]
    assert shapes[0] == {"input_features": (2, 8, 104), "input_features_mask": (2, 100)}
    assert {"input_features": (2, 8, 104), "input_features_mask": (2, 104)} in shapes
