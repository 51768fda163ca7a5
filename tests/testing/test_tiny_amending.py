"""Configs whose shrunk sizes the model's code refuses: single fields are changed after what it says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlavaConfig

from transformers_exporters.errors import InputError, UnsupportedModelError
from transformers_exporters.testing import tiny_model
from transformers_exporters.testing.tiny.amending import TooLargeError, amended, demanded
from transformers_exporters.testing.tiny.complaint import Complaint
from transformers_exporters.testing.tiny.config import Path, shrink, shrunk_fields
from transformers_exporters.testing.tiny.plan import Plan

# Type, and what made its shrunk default unfit.
REFUSED = {
    "dory": "a sum of layers that a validator checks",
    "step3p5": "no window although its layers slide",
    "qwen4_exp": "no default for what the indexer of its attention needs",
    "diffusion_gemma_text": "no experts outside of the larger model",
    "deepseek_ocr2_text": "no kinds of layers outside of the larger model",
    "t5gemma2_text": "an attribute that only the larger model sets",
    "pocket_tts_audio_tokenizer": "convolutions with as many groups as channels",
    "cohere_compass_text": "no rotary parameters for the kind of its layers",
    "mistral_large4_text": "layers that read from layers that are gone",
    "bamba": "no layer that attends",
    "dots1": "no number of experts, and the code asks for it under another name",
    "apertus1p5": "ranges of tokens that are counted from the end of the vocabulary",
}


def _model(model_type: str) -> tuple[Any, dict[str, Any]]:
    try:
        return tiny_model(model_type)
    except InputError as missing:
        pytest.skip(f"an older transformers: {missing}")


@pytest.mark.parametrize("model_type", REFUSED)
def test_a_refused_config_is_amended(model_type: str) -> None:
    model, inputs = _model(model_type)
    assert sum(parameter.numel() for parameter in model.parameters()) < 40_000_000
    with torch.no_grad():
        model(**inputs)


def test_a_model_that_only_generates_says_so() -> None:
    with pytest.raises(UnsupportedModelError, match="has no forward"):
        tiny_model("bark")


def _complaint(message: str, **told: Any) -> Complaint:
    told = {"nothing": (), "names": (), "axes": (), "strings": (), "pairs": ()} | told
    return Complaint(message, **told)


def _changes(config: Any, complaint: Complaint, problem: Exception | None = None) -> list[dict[Path, Any]]:
    return list(amended(config, Plan(), {}, problem or ValueError(complaint.message), complaint))


def test_numbers_that_a_message_demands() -> None:
    assert demanded("hidden_size must be 0, got 256") == {"hidden_size": 0}
    assert demanded("It requires kv_heads=1.") == {"kv_heads": 1}
    assert demanded("must be positive") == {}


def test_fields_without_a_value_get_one_together_and_then_each() -> None:
    config = LlamaConfig(one_rank=None, other_experts=None)
    complaint = _complaint("'NoneType' and 'NoneType'", nothing=("other_num_experts", "one_rank", "other_experts"))
    changes = _changes(config, complaint)
    assert set(changes[0]) == {("one_rank",), ("other_experts",)}
    assert {("one_rank",): 16} in changes


def test_sizes_are_made_to_agree_in_any_part() -> None:
    changes = _changes(LlavaConfig(), _complaint("", pairs=((256, 128),)))
    assert {("vision_config", "intermediate_size"): 256} in changes
    assert {("text_config", "intermediate_size"): 256} in changes


def test_what_a_message_names_is_taken_back() -> None:
    config = LlamaConfig(hidden_size=512, num_hidden_layers=6)
    changes = _changes(
        config, _complaint("hidden_size + num_hidden_layers", names=("hidden_size", "num_hidden_layers"))
    )
    assert changes[0] == {("hidden_size",): 512, ("num_hidden_layers",): 6}


def test_the_axes_of_the_largest_parameters_are_cut() -> None:
    config = LlamaConfig(upsample_initial_channel=1536, channel_sizes=[768, 7])
    problem = TooLargeError(10**8, (1536, 768, 11))
    assert _changes(config, _complaint(""), problem)[0] == {("upsample_initial_channel",): 192}
    assert "100 million" in str(problem)


def test_fixed_fields_keep_their_value_through_every_part() -> None:
    fixed = {("vision_config", "intermediate_size"): 192, ("text_config", "extra"): 3}
    shrunk = shrink(LlavaConfig(), Plan(), fixed)
    assert shrunk.vision_config.intermediate_size == 192
    assert shrunk.text_config.extra == 3
    fields = shrunk_fields(LlavaConfig(), Plan(), fixed)
    assert fields["vision_config", "hidden_size"] == (1024, 64)
    assert fields["text_config", "extra"] == (None, 3)
