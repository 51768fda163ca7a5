"""`dynamic=True` is kept or refused: graphs traced on one small sample run at every size that the model takes."""

import pytest
import torch

import transformers_exporters as te
from models import bert, decoder, dinov2, ids, left_padded

EXPORTERS = {
    "dynamo": (te.DynamoExporter, te.DynamoConfig),
    "onnx": (te.OnnxExporter, te.OnnxConfig),
    "openvino": (te.OpenVINOExporter, te.OpenVINOConfig),
    "executorch": (te.ExecutorchExporter, te.ExecutorchConfig),
}


def export(format, model, inputs, **fields):
    exporter, config = EXPORTERS[format]
    return exporter().export_model(model, inputs, config=config(dynamic=True, **fields))


def eager(model, inputs):
    with torch.no_grad():
        return model(**inputs)


@pytest.mark.parametrize("format", EXPORTERS)
def test_a_batch_of_one_runs_any_batch_and_length(format):
    model = bert()
    exported = export(format, model, {"input_ids": ids(1, 1), "attention_mask": torch.ones(1, 1, dtype=torch.long)})
    for batch, length in ((1, 1), (3, 9), (2, 64), (5, 2)):
        inputs = {"input_ids": ids(batch, length), "attention_mask": torch.ones(batch, length, dtype=torch.long)}
        wanted = eager(model, inputs).last_hidden_state
        torch.testing.assert_close(exported(**inputs).last_hidden_state, wanted, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("format", EXPORTERS)
def test_past_the_models_own_limit_is_refused_by_name(format):
    exported = export(format, bert(), {"input_ids": ids(1, 7)})
    with pytest.raises(te.InputError, match=r"input_ids.*65"):
        exported(input_ids=ids(2, 65))


@pytest.mark.parametrize("format", EXPORTERS)
def test_a_vision_transformer_traced_at_its_native_size_takes_other_sizes(format):
    model = dinov2()
    exported = export(format, model, {"pixel_values": torch.randn(1, 3, 56, 56)})
    for height, width in ((56, 56), (84, 112), (70, 70), (28, 84)):
        inputs = {"pixel_values": torch.randn(2, 3, height, width)}
        wanted = eager(model, inputs).last_hidden_state
        torch.testing.assert_close(exported(**inputs).last_hidden_state, wanted, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("format", EXPORTERS)
def test_both_sides_of_a_sliding_window(format):
    model = decoder("mistral")
    exported = export(format, model, {"input_ids": ids(1, 5)})
    for length in (1, 3, 7, 8, 9, 50):
        wanted, got = eager(model, {"input_ids": ids(3, length)}), exported(input_ids=ids(3, length))
        torch.testing.assert_close(got.logits, wanted.logits, atol=2e-5, rtol=1e-4)
        for mine, theirs in zip(got.cache.layers, wanted.cache.layers, strict=True):
            assert mine.keys.shape == theirs.keys.shape == (3, 2, min(length, 7), 16)
            torch.testing.assert_close(mine.keys, theirs.keys, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("format", EXPORTERS)
def test_both_regimes_of_longrope(format):
    model = decoder("phi3_longrope")
    exported = export(
        format,
        model,
        {"input_ids": ids(1, 20)},
    )
    for length in (20, 32, 33, 40):
        wanted = eager(decoder("phi3_longrope"), {"input_ids": ids(2, length)}).logits
        torch.testing.assert_close(exported(input_ids=ids(2, length)).logits, wanted, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("format", EXPORTERS)
def test_every_expert_is_reached_although_the_trace_met_two(format):
    model = decoder("mixtral")
    exported = export(format, model, {"input_ids": torch.full((1, 6), 7)})
    inputs = {"input_ids": ids(3, 31)}
    torch.testing.assert_close(exported(**inputs).logits, eager(model, inputs).logits, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("format", EXPORTERS)
def test_left_padded_rows_are_finite_and_equal_the_unpadded_run(format):
    model = decoder("llama")
    exported = export(format, model, {"input_ids": ids(1, 6), "attention_mask": torch.ones(1, 6, dtype=torch.long)})
    inputs = left_padded(2, 9, (3, 0))
    got = exported(**inputs).logits
    assert torch.isfinite(got).all()
    alone = eager(model, {"input_ids": inputs["input_ids"][:1, 3:]}).logits
    torch.testing.assert_close(got[:1, 3:], alone, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("format", EXPORTERS)
def test_explicit_bounds_hold_at_both_ends_and_refuse_what_is_past_them(format):
    model = bert()
    batch, sequence = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("seq", min=2, max=32)
    shapes = {"input_ids": {0: batch, 1: sequence}, "attention_mask": {0: batch, 1: sequence}}
    inputs = {"input_ids": ids(2, 7), "attention_mask": torch.ones(2, 7, dtype=torch.long)}
    exporter, config = EXPORTERS[format]
    config = config(dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=True)
    exported = exporter().export_model(model, inputs, config=config)
    for rows, length in ((1, 2), (8, 32), (1, 32), (8, 2)):
        case = {"input_ids": ids(rows, length), "attention_mask": torch.ones(rows, length, dtype=torch.long)}
        wanted = eager(model, case).last_hidden_state
        torch.testing.assert_close(exported(**case).last_hidden_state, wanted, atol=2e-5, rtol=1e-4)
    for rows, length, said in ((2, 33, "33"), (9, 7, "9"), (2, 1, "1")):
        with pytest.raises(te.InputError, match=rf"input_ids.*{said}"):
            exported(input_ids=ids(rows, length), attention_mask=torch.ones(rows, length, dtype=torch.long))
