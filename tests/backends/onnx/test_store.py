"""What of a checkpoint goes into an artifact."""

from pathlib import Path

import transformers

import transformers_exporters as te
from models import DECODER, left_padded
from transformers_exporters.prepare.checkpoint import load_checkpoint


def test_a_checkpoint_of_which_little_is_used_is_not_linked(tmp_path: Path) -> None:
    """The graph of a backbone alone: the large head stays where it is; components share what is copied."""
    config = transformers.LlamaConfig(**{**DECODER, "vocab_size": 4096, "tie_word_embeddings": False})
    whole = transformers.LlamaForCausalLM(config).eval()
    whole.save_pretrained(tmp_path / "checkpoint")
    model, inputs = load_checkpoint(str(tmp_path / "checkpoint")), left_padded(2, 6, (0, 2))
    te.OnnxExporter().export_model(model.model, inputs, te.OnnxConfig(dynamic=True)).save_pretrained(tmp_path / "half")
    te.OnnxExporter().export_model(model, inputs, te.OnnxConfig(dynamic=True)).save_pretrained(tmp_path / "all")
    size = (tmp_path / "checkpoint" / "model.safetensors").stat().st_size
    assert (tmp_path / "half" / "model.safetensors").stat().st_size < 0.6 * size
    assert (tmp_path / "all" / "model.safetensors").samefile(tmp_path / "checkpoint" / "model.safetensors")
    assert te.verify(model.model, tmp_path / "half", inputs).ok
