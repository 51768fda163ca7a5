"""An artifact of one graph is what `transformers.pipeline(model=...)` takes."""

import pytest
import torch
import transformers as tf
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import transformers_exporters as te

_SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def reloaded(model, inputs, directory):
    te.OnnxExporter().export_model(model, inputs, te.OnnxConfig(dynamic=True)).save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory)


def test_texts_are_classified(tmp_path):
    torch.manual_seed(0)
    labels = {0: "bad", 1: "good"}
    model = tf.BertForSequenceClassification(tf.BertConfig(vocab_size=8, id2label=labels, **_SIZES)).eval()
    raw = Tokenizer(models.WordLevel({word: n for n, word in enumerate(["[PAD]", "[UNK]", *"abcdef"])}, "[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]")
    exported = reloaded(model, dict(tokenizer("a b", return_tensors="pt")), tmp_path / "artifact")
    texts = ["a", "b c d e f"]
    wanted = tf.pipeline("text-classification", model=model, tokenizer=tokenizer)(texts, batch_size=2)
    got = tf.pipeline("text-classification", model=exported, tokenizer=tokenizer)(texts, batch_size=2)
    assert [row["label"] for row in got] == [row["label"] for row in wanted]
    assert [row["score"] for row in got] == pytest.approx([row["score"] for row in wanted], abs=1e-5)
    assert exported.device == torch.device("cpu") and not exported.can_generate()
    inputs = dict(tokenizer("a b", return_tensors="pt"))
    assert torch.equal(exported.forward(**inputs).logits, exported(**inputs).logits)


def test_texts_are_compared_with_labels(tmp_path):
    """The pipeline passes `use_cache=False`, which is no input of the graph."""
    torch.manual_seed(0)
    sizes = {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    labels = {"contradiction": 0, "entailment": 1}
    config = tf.BartConfig(vocab_size=8, d_model=16, label2id=labels, eos_token_id=7, **sizes)
    model = tf.BartForSequenceClassification(config).eval()
    raw = Tokenizer(models.WordLevel({word: n for n, word in enumerate(["[PAD]", "[UNK]", *"abcde", "</s>"])}, "[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    end = [("</s>", 7)]
    raw.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A $B </s>", special_tokens=end)
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="[PAD]",
        sep_token="</s>",
        unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
    )
    exported = reloaded(model, dict(tokenizer("a b", "c", return_tensors="pt")), tmp_path / "artifact")
    options = {"candidate_labels": ["a", "b c", "d"], "hypothesis_template": "e {}"}
    got, wanted = (
        tf.pipeline("zero-shot-classification", model=one, tokenizer=tokenizer)("a b c", **options)
        for one in (exported, model)
    )
    assert got["labels"] == wanted["labels"]
    assert got["scores"] == pytest.approx(wanted["scores"], abs=1e-5)


def test_images_are_classified(tmp_path):
    torch.manual_seed(0)
    model = tf.ViTForImageClassification(tf.ViTConfig(image_size=32, patch_size=8, num_labels=3, **_SIZES)).eval()
    exported = reloaded(model, {"pixel_values": torch.randn(1, 3, 32, 32)}, tmp_path / "artifact")
    processor = tf.ViTImageProcessor(size={"height": 32, "width": 32})
    image = Image.new("RGB", (50, 40), (200, 30, 90))
    got, wanted = (
        tf.pipeline("image-classification", model=one, image_processor=processor)(image) for one in (exported, model)
    )
    assert [row["label"] for row in got] == [row["label"] for row in wanted]


def test_a_plain_module_has_no_more_than_its_graph():
    exported = te.OnnxExporter().export_model(torch.nn.Linear(3, 2), {"input": torch.randn(2, 3)})
    with pytest.raises(AttributeError, match="has no attribute 'device'"):
        _ = exported.device
