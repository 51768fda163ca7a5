"""A checkpoint is mapped, not loaded, and every backend's artifact of it holds each weight once."""

import pytest
import torch

import transformers_exporters as te
from models import decoder, ids
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
