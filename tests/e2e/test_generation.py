"""Generation from a saved, reloaded artifact gives the tokens that the model would have given."""

import pytest
import torch
from transformers import GenerationConfig

import transformers_exporters as te
from models import decoder, gpt2, ids, left_padded, mamba

EXPORTERS = {"dynamo": (te.DynamoExporter, te.DynamoConfig), "onnx": (te.OnnxExporter, te.OnnxConfig)}
STATIC = GenerationConfig(cache_implementation="static", max_cache_len=48)
MODELS = {
    "llama": lambda: decoder("llama"),
    "mistral": lambda: decoder("mistral"),
    "gemma3": lambda: decoder("gemma3"),
    "gpt2": gpt2,
}


def reloaded(format, model, directory, **options):
    exporter, config = EXPORTERS[format]
    inputs = {"input_ids": ids(1, 5)}
    exporter().export_model(model, inputs, config=config(dynamic=True), for_generation=True, **options).save_pretrained(
        directory
    )
    return te.ExportedModel.from_pretrained(directory, trust_remote_code=True)


@pytest.mark.parametrize("format", EXPORTERS)
@pytest.mark.parametrize("name", MODELS)
def test_greedy_past_the_window_with_and_without_padding(format, name, tmp_path):
    model = MODELS[name]()
    exported = reloaded(format, model, tmp_path / "artifact")
    assert list(exported) == ["prefill", "decode"]
    greedy = {"max_new_tokens": 12, "do_sample": False}
    for inputs in ({"input_ids": ids(1, 11)}, left_padded(3, 9, (4, 0, 1))):
        assert torch.equal(exported.generate(**inputs, **greedy), model.generate(**inputs, **greedy))


@pytest.mark.parametrize("format", EXPORTERS)
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_one_graph_over_a_static_cache(format, name, tmp_path):
    model = MODELS[name]()
    exported = reloaded(format, model, tmp_path / "artifact", generation_config=STATIC, multi_token_decode=True)
    assert list(exported) == ["decode"]
    for inputs in ({"input_ids": ids(1, 11)}, left_padded(3, 9, (4, 0, 1)), {"input_ids": ids(1, 30, seed=3)}):
        options = {"max_new_tokens": 12, "do_sample": False}
        assert torch.equal(exported.generate(**inputs, **options), model.generate(**inputs, **options))


@pytest.mark.parametrize("format", EXPORTERS)
def test_recurrent_state_is_carried(format, tmp_path):
    model = mamba()
    exported = reloaded(format, model, tmp_path / "artifact")
    inputs, greedy = {"input_ids": ids(2, 9)}, {"max_new_tokens": 8, "do_sample": False}
    assert torch.equal(exported.generate(**inputs, **greedy), model.generate(**inputs, **greedy))


def test_beams_sampling_and_streaming(tmp_path):
    model = decoder("llama")
    exported = reloaded("onnx", model, tmp_path / "artifact")
    inputs = left_padded(2, 7, (2, 0))
    beams = {"num_beams": 4, "max_new_tokens": 8, "do_sample": False}
    assert torch.equal(exported.generate(**inputs, **beams), model.generate(**inputs, **beams))
    sampling = {"do_sample": True, "top_k": 20, "temperature": 0.7, "max_new_tokens": 8}
    torch.manual_seed(7)
    wanted = model.generate(**inputs, **sampling)
    torch.manual_seed(7)
    assert torch.equal(exported.generate(**inputs, **sampling), wanted)


def test_components_share_their_weights(tmp_path):
    model = decoder("llama", tie_word_embeddings=True, hidden_size=128, intermediate_size=512)
    reloaded("onnx", model, tmp_path / "onnx")
    reloaded("dynamo", model, tmp_path / "dynamo")
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    for format in ("onnx", "dynamo"):
        stored = (tmp_path / format / "model.safetensors").stat().st_size
        assert 0.99 * weights <= stored <= 1.05 * weights, format  # the smallest lie inside the graph


def test_a_mask_input_even_when_the_sample_had_no_padding():
    split = te.decompose_for_generation(decoder("llama"), {"input_ids": ids(1, 5)}, multi_token_decode=True)
    assert {"prefill", "decode"} == set(split)
    module, decode = split["decode"]
    assert decode["input_ids"].shape == (1, 2) and decode["attention_mask"].shape == (1, 7)
    with torch.no_grad():
        assert module(**decode).logits.shape == (1, 2, 128)


def test_the_number_of_logits_is_the_callers_choice():
    model = decoder("llama")
    last = te.OnnxExporter().export_model(
        model, {"input_ids": ids(1, 5), "logits_to_keep": 1}, config=te.OnnxConfig(dynamic=True)
    )
    with torch.no_grad():
        wanted = model(input_ids=ids(2, 9)).logits[:, -1:]
    torch.testing.assert_close(last(input_ids=ids(2, 9)).logits, wanted, atol=2e-5, rtol=1e-4)
