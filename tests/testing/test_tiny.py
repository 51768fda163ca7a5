"""Tiny models of architectures of every kind: they build, run, stay small, and are the same for the same seed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transformers_exporters.errors import InputError
from transformers_exporters.testing import tiny_model

# Model type, and inputs that have to be among those that were made.
KINDS = {
    "llama": {"input_ids", "attention_mask"},
    "bert": {"input_ids", "attention_mask"},
    "t5": {"input_ids", "decoder_input_ids"},
    "whisper": {"input_features", "decoder_input_ids"},
    "vit": {"pixel_values"},
    "qwen3_vl": {"input_ids", "pixel_values", "image_grid_thw"},
    "mamba": {"input_ids"},
    "mixtral": {"input_ids"},
    "clip": {"input_ids", "pixel_values"},
    "wav2vec2": {"input_values"},
    "detr": {"pixel_values"},
    "gemma3": {"input_ids", "pixel_values"},
    "deepseek_v3": {"input_ids"},
    "segformer": {"pixel_values"},
    "llava": {"input_ids", "pixel_values"},
}


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for one in inner for tensor in _tensors(one)]


@pytest.mark.parametrize("model_type", KINDS)
def test_it_runs_and_is_tiny(model_type: str) -> None:
    model, inputs = tiny_model(model_type)
    assert model.config.model_type == model_type
    assert not model.training
    assert sum(parameter.numel() for parameter in model.parameters()) < 5_000_000
    assert set(inputs) >= KINDS[model_type]
    with torch.no_grad():
        outputs = _tensors(model(**inputs))
    assert outputs
    assert all(bool(torch.isfinite(tensor).all()) for tensor in outputs if tensor.is_floating_point())


@pytest.mark.parametrize("model_type", ["llama", "qwen3_vl", "wav2vec2"])
def test_a_seed_decides_weights_and_inputs(model_type: str) -> None:
    before = torch.get_rng_state()
    (one, inputs), (same, same_inputs), (other, _) = (tiny_model(model_type, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state()), "the caller's random state is left alone"
    assert all(torch.equal(value, same_inputs[name]) for name, value in inputs.items())
    pairs = list(zip(one.state_dict().values(), same.state_dict().values(), strict=True))
    assert all(torch.equal(left, right) for left, right in pairs)
    assert any(
        not torch.equal(left, right)
        for left, right in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_the_inputs_decide_the_outputs() -> None:
    """A picture that changes changes the logits of a model that mixes pictures into text."""
    model, inputs = tiny_model("llava")
    with torch.no_grad():
        first = model(**inputs).logits
        second = model(**{**inputs, "pixel_values": inputs["pixel_values"] + 1}).logits
    assert not torch.allclose(first, second)


def test_a_task_chooses_the_head() -> None:
    assert type(tiny_model("bert")[0]).__name__ == "BertForMaskedLM"
    assert type(tiny_model("bert", task="sequence-classification")[0]).__name__ == "BertForSequenceClassification"
    assert type(tiny_model("bert", task="base")[0]).__name__ == "BertModel"


def test_special_tokens_fit_the_vocabulary_and_stay_apart() -> None:
    model, inputs = tiny_model("qwen3_vl")
    config = model.config
    named = [config.image_token_id, config.video_token_id, config.vision_start_token_id, config.vision_end_token_id]
    assert len(set(named)) == 4
    assert max(named) < config.text_config.vocab_size
    assert int((inputs["input_ids"] == config.image_token_id).sum(1).min()) > 0


@pytest.mark.parametrize(("wrong", "hint"), [("qwen3vl", "qwen3_vl"), ("lama", "llama")])
def test_an_unknown_type_names_the_closest(wrong: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        tiny_model(wrong)


def test_an_unknown_task_names_the_others() -> None:
    with pytest.raises(InputError, match="sequence-classification"):
        tiny_model("bert", task="depth-estimation")


def test_layers_that_only_the_list_of_their_types_counts_are_cut() -> None:
    model, _ = tiny_model("nemo_speechlm")
    assert 2 <= len(model.config.text_config.layer_types) <= 6


def test_the_steps_of_a_loop_are_cut() -> None:
    model, inputs = tiny_model("slanet")
    assert model(**inputs).last_hidden_state.shape[1] <= 17


@pytest.mark.parametrize("model_type", ["bert", "encodec", "vit_mae"])
def test_no_weight_is_zeros(model_type: str) -> None:
    """An initialiser leaves biases and tables of codes at zero, and an export that lost them would seem right."""
    model, _ = tiny_model(model_type)
    weights = {name: value for name, value in model.state_dict().items() if value.is_floating_point()}
    assert [name for name, value in weights.items() if value.numel() > 1 and not bool(value.any())] == []
