"""A reloaded artifact is what `transformers.pipeline(model=...)` takes: text, speech, and images with text."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import (
    CLIPImageProcessor,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperTokenizer,
    pipeline,
)

import transformers_exporters as te
from models import decoder, ids, llava, whisper


@pytest.fixture(scope="module")
def tokenizer():
    """Words of two letters, one token each; `<image>` is the token that a LLaVA of the tests puts images at."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = "abcdefghijk"
    words = ["<pad>", "<s>", "</s>", "<unk>", "xx", "<image>", *(a + b for a in letters for b in letters)][:120]
    raw = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        padding_side="left",
        extra_special_tokens={"image_token": "<image>"},
    )


def reloaded(model, inputs, directory):
    exporter = te.OnnxExporter()
    exporter.export_model(model, inputs, te.OnnxConfig(dynamic=True), for_generation=True).save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory)


def test_text_generation(tokenizer, tmp_path):
    model = decoder("llama")
    exported = reloaded(model, {"input_ids": ids(1, 5)}, tmp_path / "artifact")
    texts = ["ab ac ad", "ba cb dc ed fe"]
    options = {"max_new_tokens": 6, "do_sample": False, "batch_size": 2}
    wanted = pipeline("text-generation", model=model, tokenizer=tokenizer)(texts, **options)
    assert pipeline("text-generation", model=exported, tokenizer=tokenizer)(texts, **options) == wanted


def test_speech_recognition(tmp_path):
    model = whisper()
    features = torch.randn(1, 16, 100, generator=torch.Generator().manual_seed(0))
    exported = reloaded(model, {"input_features": features}, tmp_path / "artifact")
    extractor = WhisperFeatureExtractor(feature_size=16, sampling_rate=1600, hop_length=16, chunk_length=1, n_fft=64)
    sound = np.random.default_rng(0).normal(size=1500).astype(np.float32)
    words = [
        "<pad>",
        "<s>",
        "<|endoftext|>",
        *(f"{first}{second}" for first in "abcdefghijk" for second in "abcdefghijk"),
    ]
    words = WhisperTokenizer(vocab={word: number for number, word in enumerate(words[:120])}, merges=[])
    parts = {"tokenizer": words, "feature_extractor": extractor}
    options = {"generate_kwargs": {"max_new_tokens": 6, "do_sample": False}}
    wanted = pipeline("automatic-speech-recognition", model=model, **parts)(sound, **options)
    assert pipeline("automatic-speech-recognition", model=exported, **parts)(sound, **options) == wanted
    assert isinstance(exported.generator, WhisperForConditionalGeneration)
    # Pipelines choose what they do by the name of the model's class.
    assert isinstance(exported, te.ExportedModel)
    assert type(exported).__name__ == "WhisperForConditionalGeneration"


def test_images_with_text(tokenizer, tmp_path):
    model = llava()
    size = {"height": 8, "width": 8}
    images = CLIPImageProcessor(size={"shortest_edge": 8}, crop_size=size)
    processor = LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=2,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    inputs = {"images": Image.fromarray(pixels), "text": "ab <image> ac ad"}
    exported = reloaded(model, dict(processor(**inputs, return_tensors="pt")), tmp_path / "artifact")
    options = {"generate_kwargs": {"max_new_tokens": 6, "do_sample": False}}
    wanted = pipeline("image-text-to-text", model=model, processor=processor)(**inputs, **options)
    got = pipeline("image-text-to-text", model=exported, processor=processor)(**inputs, **options)
    assert json.dumps(got, default=str) == json.dumps(wanted, default=str)
