"""`backends.onnx.fixes.copy_before_reshape`: a T5 block reaches ONNX although its attention is laid out anew."""

import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from transformers_exporters import LoweringError, OnnxConfig, OnnxExporter

ID = "backends.onnx.fixes.copy_before_reshape"


def _model():
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=1,
        num_heads=4,
        decoder_start_token_id=0,
        dropout_rate=0.0,
    )
    inputs = {
        "input_ids": torch.randint(2, 64, (2, 7)),
        "attention_mask": torch.ones(2, 7, dtype=torch.long),
        "decoder_input_ids": torch.randint(2, 64, (2, 5)),
    }
    return T5ForConditionalGeneration(config).eval(), inputs


def test_needed():
    model, inputs = _model()
    with pytest.raises(LoweringError, match="view"):
        OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, disabled_workarounds=(ID,)))


def test_works():
    model, inputs = _model()
    exported = OnnxExporter().export_model(model, inputs, config=OnnxConfig(dynamic=True))
    longer = {name: torch.cat([value, value], 1)[:1] for name, value in inputs.items()}
    for case in (inputs, longer):
        with torch.no_grad():
            wanted = model(**case).logits
        torch.testing.assert_close(exported(**case).logits, wanted, atol=1e-5, rtol=1e-4)
