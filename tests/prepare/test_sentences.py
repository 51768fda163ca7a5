"""A checkpoint of sentence-transformers gives one vector for a text, as its own library computes it."""

import json

import pytest
import torch
import transformers as tf
from safetensors.torch import save_file

import transformers_exporters as te
from transformers_exporters.pipeline import load_checkpoint

TEXTS = {
    "input_ids": torch.tensor([[5, 6, 7, 8, 9], [9, 8, 7, 0, 0], [0, 0, 4, 5, 6]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]),
}


def checkpoint(directory, pooling, *others):
    """A BERT with a head that no sentence needs, and the modules after it."""
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    model = tf.BertForMaskedLM(tf.BertConfig(vocab_size=60, hidden_size=32, **sizes)).eval()
    model.save_pretrained(directory)
    modules = ["Transformer", "Pooling", *others]
    paths = ["" if kind == "Transformer" else f"{index}_{kind}" for index, kind in enumerate(modules)]
    kinds = [f"sentence_transformers.models.{kind}" for kind in modules]
    listed = [{"idx": i, "path": path, "type": kind} for i, (path, kind) in enumerate(zip(paths, kinds, strict=True))]
    (directory / "modules.json").write_text(json.dumps(listed))
    for path in filter(None, paths):
        (directory / path).mkdir()
    (directory / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **pooling}))
    return model.bert


def tokens_of(model, row):
    ids, mask = TEXTS["input_ids"][row : row + 1], TEXTS["attention_mask"][row : row + 1]
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask).last_hidden_state[0], mask[0].bool()


@pytest.mark.filterwarnings("ignore:.*has no place for")
def test_mean_dense_and_norm_in_an_artifact(tmp_path):
    source = tmp_path / "source"
    bert = checkpoint(source, {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "Dense", "Normalize")
    weight, bias = torch.randn(12, 32), torch.randn(12)
    save_file({"linear.weight": weight, "linear.bias": bias}, source / "2_Dense" / "model.safetensors")
    settings = {"in_features": 32, "out_features": 12, "activation_function": "torch.nn.modules.activation.Tanh"}
    (source / "2_Dense" / "config.json").write_text(json.dumps(settings))

    sample = {name: value[:1, :4] for name, value in TEXTS.items()}
    te.OnnxExporter().export_model(load_checkpoint(source), sample, te.OnnxConfig(dynamic=True)).save_pretrained(
        tmp_path / "artifact"
    )
    outputs = te.ExportedModel.from_pretrained(tmp_path / "artifact")(**TEXTS)
    for row in range(3):
        tokens, seen = tokens_of(bert, row)
        wanted = torch.tanh(tokens[seen].mean(0) @ weight.T + bias)
        torch.testing.assert_close(outputs.sentence_embedding[row], wanted / wanted.norm(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(outputs[0][row][seen], tokens[seen], rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*has no place for")
@pytest.mark.parametrize(
    ("pooling", "wanted"),
    [
        ({"pooling_mode_cls_token": True}, lambda tokens, seen: tokens[0]),
        ({"pooling_mode": "lasttoken"}, lambda tokens, seen: tokens[seen][-1]),
        (
            {"pooling_mode": ["mean", "max"]},
            lambda tokens, seen: torch.cat([tokens[seen].amax(0), tokens[seen].mean(0)]),
        ),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, lambda tokens, seen: tokens[seen].sum(0) / seen.sum().sqrt()),
        (
            {"pooling_mode_weightedmean_tokens": True},
            lambda tokens, seen: (seen * torch.arange(1.0, 6)) @ tokens / (seen * torch.arange(1, 6)).sum(),
        ),
    ],
)
def test_pooling(tmp_path, pooling, wanted):
    bert = checkpoint(tmp_path / "source", pooling)
    model = load_checkpoint(tmp_path / "source")
    with torch.no_grad():
        got = model(**TEXTS).sentence_embedding
    for row in range(3):
        torch.testing.assert_close(got[row], wanted(*tokens_of(bert, row)), rtol=1e-5, atol=1e-5)


def test_another_task_is_the_class_of_that_task(tmp_path):
    checkpoint(tmp_path / "source", {"pooling_mode_mean_tokens": True})
    assert type(load_checkpoint(tmp_path / "source", task="fill-mask")) is tf.BertForMaskedLM


def test_modules_that_are_not_known_are_said(tmp_path):
    checkpoint(tmp_path / "source", {"pooling_mode_mean_tokens": True}, "LSTM")
    with pytest.warns(UserWarning, match="LSTM is not known here"):
        load_checkpoint(tmp_path / "source")
