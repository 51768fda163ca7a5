"""A checkpoint is mapped, not loaded, and every backend's artifact of it holds each weight once."""

import json

import pytest
import torch
import transformers as tf

import transformers_exporters as te
from models import decoder, ids
from transformers_exporters.errors import InputError
from transformers_exporters.pipeline import load_checkpoint
from transformers_exporters.prepare.references import is_referenced, reference_of


@pytest.fixture
def checkpoint(tmp_path):
    model = decoder("llama", hidden_size=128, intermediate_size=512)
    model.save_pretrained(tmp_path / "checkpoint")
    return tmp_path / "checkpoint", model


def test_a_mapped_model_is_the_model(checkpoint):
    directory, model = checkpoint
    mapped = load_checkpoint(directory)
    assert is_referenced(mapped) and not mapped.training
    weight = mapped.model.layers[0].mlp.up_proj.weight
    assert reference_of(weight).file.parent == directory
    # Its memory is its own range of the file: saving one tensor must not write those before it.
    assert weight.untyped_storage().nbytes() == weight.numel() * weight.element_size()
    with torch.no_grad():
        assert torch.equal(mapped(input_ids=ids(2, 9)).logits, model(input_ids=ids(2, 9)).logits)


@pytest.mark.parametrize("exporter", [te.DynamoExporter, te.OnnxExporter])
def test_an_artifact_of_a_checkpoint_weighs_the_checkpoint(checkpoint, exporter, tmp_path):
    directory, model = checkpoint
    exported = exporter().export_model(load_checkpoint(directory), {"input_ids": ids(1, 5)}, config={"dynamic": True})
    exported.save_pretrained(tmp_path / "artifact")
    stored = sum(file.stat().st_size for file in (tmp_path / "artifact").iterdir())
    weights = (directory / "model.safetensors").stat().st_size
    assert weights <= stored <= 1.25 * weights  # the graph of a tiny model weighs something too
    reloaded = te.ExportedModel.from_pretrained(tmp_path / "artifact", trust_remote_code=True)
    with torch.no_grad():
        wanted = model(input_ids=ids(3, 9)).logits
    torch.testing.assert_close(reloaded(input_ids=ids(3, 9)).logits, wanted, atol=2e-5, rtol=1e-4)


def _bert(**changes):
    config = tf.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, **changes
    )
    return config, tf.BertForSequenceClassification(config).eval()


def _edit(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_head_that_is_not_stored_is_no_secret(tmp_path):
    """The weights of such a head are random numbers, and every comparison with the model would pass."""
    _, model = _bert()
    model.bert.save_pretrained(tmp_path)
    _edit(tmp_path / "config.json", architectures=["BertForSequenceClassification"])
    with pytest.warns(UserWarning, match=r"does not hold classifier.bias, classifier.weight of .*: .* random"):
        load_checkpoint(tmp_path)
    with pytest.warns(UserWarning, match="does not hold"):
        load_checkpoint(tmp_path, task="text-classification")


def test_names_of_another_wrapper_are_refused(tmp_path):
    _, model = _bert()
    model.save_pretrained(tmp_path, state_dict={f"wrapped.net.{name}": v for name, v in model.state_dict().items()})
    with pytest.raises(InputError, match="holds no weight of a BertForSequenceClassification under its name"):
        load_checkpoint(tmp_path)


def test_a_class_that_transformers_lacks_is_refused(tmp_path):
    """It was exported as the base model without its head."""
    _, model = _bert()
    model.save_pretrained(tmp_path)
    _edit(tmp_path / "config.json", architectures=["MyReranker"])
    with pytest.raises(InputError, match="is a MyReranker, which transformers does not have"):
        load_checkpoint(tmp_path)
    assert type(load_checkpoint(tmp_path, task="text-classification")) is tf.BertForSequenceClassification
    with pytest.warns(UserWarning, match=r"BertModel has no place for classifier.bias, classifier.weight"):
        load_checkpoint(tmp_path, task="feature-extraction")


def test_a_config_without_a_class_means_the_base_model(tmp_path):
    _, model = _bert()
    model.save_pretrained(tmp_path)
    _edit(tmp_path / "config.json", architectures=None)
    with pytest.warns(UserWarning, match="has no place for"):
        assert type(load_checkpoint(tmp_path)) is tf.BertModel


def test_weights_of_other_sizes_than_the_config_says_are_refused(tmp_path):
    _, model = _bert()
    model.save_pretrained(tmp_path)
    _edit(tmp_path / "config.json", vocab_size=80)
    with pytest.raises(RuntimeError, match="mismatch"):
        load_checkpoint(tmp_path)
