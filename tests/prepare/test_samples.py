"""Samples made from a config are accepted by the model itself, for every kind of main input."""

from __future__ import annotations

import pytest
import torch
import transformers as tf

from transformers_exporters.prepare.samples import sample_inputs

_SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def _models() -> dict[str, tuple[type, object]]:
    return {
        "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(vocab_size=64, num_key_value_heads=1, **_SMALL)),
        "t5": (
            tf.T5ForConditionalGeneration,
            tf.T5Config(
                vocab_size=64, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
            ),
        ),
        "vit": (tf.ViTModel, tf.ViTConfig(image_size=32, patch_size=8, **_SMALL)),
        "whisper": (
            tf.WhisperForConditionalGeneration,
            tf.WhisperConfig(
                vocab_size=64,
                d_model=32,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
                num_mel_bins=16,
                max_source_positions=50,
                pad_token_id=0,
                bos_token_id=1,
                eos_token_id=2,
                decoder_start_token_id=1,
            ),
        ),
        "wav2vec2": (
            tf.Wav2Vec2Model,
            tf.Wav2Vec2Config(conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8), **_SMALL),
        ),
    }


@pytest.mark.parametrize("name", _models())
def test_the_model_takes_its_sample(name: str) -> None:
    cls, config = _models()[name]
    torch.manual_seed(0)
    model = cls(config).eval()
    inputs = sample_inputs(model)
    with torch.no_grad():
        model(**inputs)
    assert all(tensor.shape[0] == 2 for tensor in inputs.values())


def test_samples_are_the_same_every_time_and_leave_the_random_state() -> None:
    cls, config = _models()["llama"]
    model = cls(config)
    before = torch.get_rng_state()
    first, second = sample_inputs(model), sample_inputs(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first["input_ids"], second["input_ids"])
    assert first["attention_mask"].min() == 0, "a batch of texts shows padding"


@pytest.mark.parametrize(("types", "names", "taken"), [(2, None, True), (1, None, False), (2, ["input_ids"], False)])
def test_pairs_of_texts_come_with_token_types(types, names, taken, tmp_path) -> None:
    """A reranker's graph without them computes another score, and one with them is of no use to a tokenizer without."""
    model = tf.BertModel(tf.BertConfig(vocab_size=64, type_vocab_size=types, **_SMALL))
    if names is not None:
        from tokenizers import Tokenizer, models

        words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
        tf.PreTrainedTokenizerFast(tokenizer_object=words, model_input_names=names).save_pretrained(tmp_path)
        model.config.name_or_path = str(tmp_path)
    inputs = sample_inputs(model)
    assert ("token_type_ids" in inputs) == taken
    assert not taken or set(inputs["token_type_ids"].unique().tolist()) == {0, 1}
    assert "token_type_ids" not in sample_inputs(model, "generation")
