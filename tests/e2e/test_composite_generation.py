"""Encoder-decoder and multimodal models: each encoder once, and the tokens that the model would have given."""

import pytest
import torch

import transformers_exporters as te
from models import ids, llava, t5, whisper

EXPORTERS = {"dynamo": (te.DynamoExporter, te.DynamoConfig), "onnx": (te.OnnxExporter, te.OnnxConfig)}
GREEDY = {"max_new_tokens": 8, "do_sample": False}


def reloaded(format, model, inputs, directory):
    exporter, config = EXPORTERS[format]
    exported = exporter().export_model(model, inputs, config=config(dynamic=True), for_generation=True)
    exported.save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory, trust_remote_code=True)


def padded_pair():
    tokens, mask = ids(2, 9), torch.ones(2, 9, dtype=torch.long)
    tokens[1, 6:], mask[1, 6:] = 0, 0
    return {"input_ids": tokens, "attention_mask": mask}


@pytest.mark.parametrize("format", EXPORTERS)
def test_t5_encodes_once_and_takes_sentences_of_other_lengths(format, tmp_path):
    model = t5()
    exported = reloaded(format, model, {"input_ids": ids(1, 5)}, tmp_path / "artifact")
    assert list(exported) == ["encoder", "prefill", "decode"]
    calls = []
    encoder = exported["encoder"]
    run = encoder.run
    encoder.run = lambda feeds: calls.append(1) or run(feeds)
    inputs = padded_pair()
    assert torch.equal(exported.generate(**inputs, **GREEDY), model.generate(**inputs, **GREEDY))
    assert len(calls) == 1


@pytest.mark.parametrize("format", EXPORTERS)
def test_whisper(format, tmp_path):
    model = whisper()
    features = torch.randn(1, 16, 100, generator=torch.Generator().manual_seed(0))
    exported = reloaded(format, model, {"input_features": features}, tmp_path / "artifact")
    batch = torch.randn(3, 16, 100, generator=torch.Generator().manual_seed(1))
    wanted = model.generate(input_features=batch, **GREEDY)
    assert torch.equal(exported.generate(input_features=batch, **GREEDY), wanted)


@pytest.mark.parametrize("format", EXPORTERS)
def test_an_image_is_merged_into_the_prompt(format, tmp_path):
    model = llava()

    def prompt(before, after, seed):
        tokens = torch.cat([ids(1, before, seed), torch.full((1, 16), 5), ids(1, after, seed + 1)], dim=1)
        tokens[tokens == 5] = 6
        tokens[:, before : before + 16] = 5
        image = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "pixel_values": image}

    exported = reloaded(format, model, prompt(2, 3, 0), tmp_path / "artifact")
    assert {"image_encoder", "multi_modal_projector", "embed_inputs", "language_model", "lm_head", "decode"} == set(
        exported
    )
    for inputs in (prompt(2, 3, 0), prompt(4, 7, 5)):
        wanted = model.generate(**inputs, **GREEDY)
        assert torch.equal(exported.generate(**inputs, **GREEDY), wanted)
