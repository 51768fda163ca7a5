"""A task chooses the class of a model."""

import pytest
import transformers as tf

from transformers_exporters.errors import ConfigError
from transformers_exporters.prepare.tasks import TASKS, class_for


def test_transformers_has_every_class():
    for names in TASKS.values():
        assert all(hasattr(getattr(tf, name), "_model_mapping") for name in names)


@pytest.mark.parametrize(
    ("task", "config", "wanted"),
    [
        ("fill-mask", tf.BertConfig(), "BertForMaskedLM"),
        ("feature-extraction", tf.LlamaConfig(), "LlamaModel"),
        ("automatic-speech-recognition", tf.Wav2Vec2Config(), "Wav2Vec2ForCTC"),
        ("automatic-speech-recognition", tf.WhisperConfig(), "WhisperForConditionalGeneration"),
        ("image-segmentation", tf.SegformerConfig(), "SegformerForSemanticSegmentation"),
    ],
)
def test_the_class_for_a_task(task, config, wanted):
    assert class_for(task, config).__name__ == wanted


def test_errors_name_the_choices():
    with pytest.raises(ConfigError, match="no task 'texts'; the tasks are .*fill-mask"):
        class_for("texts", tf.BertConfig())
    with pytest.raises(ConfigError, match="no vit model for 'fill-mask'"):
        class_for("fill-mask", tf.ViTConfig())
