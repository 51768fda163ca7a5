"""A processor's float32 beside a model of 16 bits."""

import pytest
import torch

import transformers_exporters as te
from models import decoder, ids, whisper
from transformers_exporters.prepare.checkpoint import load_checkpoint
from transformers_exporters.prepare.precision import in_own_precision


def embeds(rows, length, dtype=torch.float32):
    values = torch.randn(rows, length, 64, generator=torch.Generator().manual_seed(0))
    return {"inputs_embeds": values.to(dtype), "attention_mask": torch.ones(rows, length, dtype=torch.long)}


def test_the_graph_takes_them_in_16_bits(tmp_path):
    """It had one row, and a product of float32 and float16 that ONNX Runtime could not open."""
    model = decoder("llama").half()
    te.OnnxExporter().export_model(model, embeds(1, 5), te.OnnxConfig(dynamic=True)).save_pretrained(tmp_path / "onnx")
    exported = te.ExportedModel.from_pretrained(tmp_path / "onnx")
    given = embeds(3, 8, torch.float16)
    with torch.no_grad():
        torch.testing.assert_close(exported(**given).logits, model(**given).logits, rtol=1e-2, atol=1e-2)
    with pytest.raises(te.InputError, match="inputs_embeds must be float16, got float32; convert it first"):
        exported(**embeds(3, 8))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_only_what_is_multiplied_as_it_is(device):
    model = decoder("llama").half().to(device)
    assert in_own_precision(model, embeds(1, 5))["inputs_embeds"].dtype is torch.float16
    assert in_own_precision(model, {"input_ids": ids(1, 5)}).keys() == {"input_ids"}
    wide = embeds(1, 5)
    assert in_own_precision(model.float(), wide)["inputs_embeds"] is wide["inputs_embeds"]


class Casting(torch.nn.Linear):
    def forward(self, values):
        return super().forward(values.to(self.weight.dtype))


def test_a_model_that_casts_takes_float32():
    given = {"values": torch.randn(2, 3)}
    assert in_own_precision(Casting(3, 2).half(), given)["values"] is given["values"]


@pytest.mark.parametrize("mapped", [False, True])
def test_generation_takes_them_in_16_bits_too(mapped, tmp_path):
    """Whisper's large checkpoints are float16, what a feature extractor makes of a sound is not."""
    model = whisper().half()
    model.save_pretrained(tmp_path / "checkpoint")
    source = load_checkpoint(tmp_path / "checkpoint") if mapped else model
    features = torch.randn(1, 16, 100, generator=torch.Generator().manual_seed(0))
    parts = te.decompose_for_generation(source, {"input_features": features})
    assert features.dtype is torch.float32
    module, inputs = parts["encoder"]
    if not mapped:
        assert inputs["input_features"].dtype is torch.float16
    assert in_own_precision(module, inputs)["input_features"].dtype is torch.float16
