"""Whisper as its users run it: languages, timestamps, long recordings, texts that go before, word timestamps."""

import copy

import numpy as np
import pytest
import torch
from transformers import (
    MoonshineConfig,
    MoonshineForConditionalGeneration,
    WhisperFeatureExtractor,
    WhisperTokenizer,
    pipeline,
)

import transformers_exporters as te
from models import whisper

WORDS = ["<pad>", "<|startoftranscript|>", "<|endoftext|>", "<|en|>", "<|de|>", "<|transcribe|>", "<|translate|>"]
WORDS += [
    "<|startofprev|>",
    *(f" {first}{second}" for first in "abcdefgh" for second in "abcdefgh"),
    "<|notimestamps|>",
]
WORDS += [f"<|{index * 0.02:.2f}|>" for index in range(51)]
CHUNK = {"max_new_tokens": 6, "do_sample": False}


def multilingual():
    """A Whisper that tells languages apart and knows timestamps, as the published ones do."""
    model = whisper()
    for parameter in model.parameters():  # so that what it hears matters
        parameter.data *= 8 if parameter.dim() > 1 else 1
    settings = model.generation_config
    settings.lang_to_id = {"<|en|>": 3, "<|de|>": 4}
    settings.task_to_id = {"transcribe": 5, "translate": 6}
    settings.no_timestamps_token_id = WORDS.index("<|notimestamps|>")
    settings.is_multilingual, settings.return_timestamps, settings.prev_sot_token_id = True, False, 7
    settings.max_initial_timestamp_index = 40
    settings.alignment_heads = [[0, 1], [1, 2]]
    return model


def features(rows, frames, seed=0):
    return torch.randn(rows, 16, frames, generator=torch.Generator().manual_seed(seed))


def reloaded(model, inputs, directory):
    exported = te.OnnxExporter().export_model(model, inputs, te.OnnxConfig(dynamic=True), for_generation=True)
    exported.save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    model = multilingual()
    return model, reloaded(model, {"input_features": features(1, 100)}, tmp_path_factory.mktemp("plain") / "artifact")


PREVIOUS = {"condition_on_prev_tokens": True, "return_timestamps": True, "language": "en"}


@pytest.mark.parametrize(
    ("frames", "options"),
    [
        (100, {}),
        (100, {"language": ["de", "en"], "task": "translate"}),
        (100, {"return_timestamps": True, "num_beams": 2}),
        (100, {"prompt_ids": torch.tensor([7, 20, 21])}),
        (260, {"return_timestamps": True}),
        (260, PREVIOUS),
        (260, {**PREVIOUS, "temperature": (0.0, 0.4), "compression_ratio_threshold": 1.2, "logprob_threshold": -1.0}),
    ],
)
def test_generate(plain, frames, options):
    model, exported = plain
    mask = torch.ones(2, frames, dtype=torch.long)
    mask[1, frames * 3 // 5 :] = 0

    def run(runner):
        torch.manual_seed(0)
        return runner.generate(features(2, frames, 1), attention_mask=mask, **CHUNK | copy.deepcopy(options))

    assert torch.equal(run(exported), run(model))


def test_the_language_of_a_recording(plain):
    model, exported = plain
    heard = features(3, 100, 2)
    assert torch.equal(exported.detect_language(heard), model.detect_language(heard))


def test_attentions_that_no_graph_returns_are_refused(plain):
    with pytest.raises(te.InputError, match="return_token_timestamps=True"):
        plain[1].generate(
            features(1, 100), return_token_timestamps=True, return_timestamps=True, language="en", **CHUNK
        )


def test_words_of_a_long_recording(tmp_path):
    model = multilingual()
    model.set_attn_implementation("eager")
    sample = {"input_features": features(1, 100), "return_token_timestamps": True}
    exported = reloaded(model, sample, tmp_path / "artifact")
    extractor = WhisperFeatureExtractor(feature_size=16, sampling_rate=1600, hop_length=16, chunk_length=1, n_fft=64)
    tokens = WhisperTokenizer(vocab={word: number for number, word in enumerate(WORDS)}, merges=[])
    tokens.add_special_tokens({"additional_special_tokens": [*WORDS[1:8], "<|notimestamps|>"]})
    sound = np.random.default_rng(0).normal(size=4000).astype(np.float32)

    def words(model):
        parts = {"tokenizer": tokens, "feature_extractor": extractor}
        recognise = pipeline("automatic-speech-recognition", model=model, **parts)
        return recognise(sound.copy(), chunk_length_s=1, return_timestamps="word", generate_kwargs=dict(CHUNK))

    wanted = words(model)
    assert wanted["chunks"]
    assert words(exported) == wanted


def test_a_mask_of_the_sound_that_no_graph_takes(tmp_path):
    """Only Moonshine's encoder looks at it, so it was taken for one that is ignored: the padding was heard, in silence."""
    torch.manual_seed(0)
    layers = {"encoder_num_hidden_layers": 1, "decoder_num_hidden_layers": 1}
    config = MoonshineConfig(vocab_size=64, hidden_size=32, intermediate_size=32, **layers)
    model = MoonshineForConditionalGeneration(config).eval()
    exported = reloaded(model, {"input_values": torch.randn(1, 2000)}, tmp_path / "artifact")
    assert exported.manifest.generation["ignored"] == []
    sound = {"input_values": torch.randn(2, 3000), "attention_mask": torch.ones(2, 3000, dtype=torch.long)}
    assert torch.equal(exported.generate(**sound, **CHUNK), model.generate(**sound, **CHUNK))
    sound["attention_mask"][1, 2000:] = 0
    with pytest.raises(te.InputError, match="exported without attention_mask, and this one hides a part"):
        exported.generate(**sound, **CHUNK)


def test_a_mask_that_whisper_ignores(plain):
    model, exported = plain
    mask = torch.ones(2, 100, dtype=torch.long)
    mask[1, 50:] = 0
    options = {"input_features": features(2, 100), "attention_mask": mask, **CHUNK}
    assert torch.equal(exported.generate(**options), model.generate(**options))
