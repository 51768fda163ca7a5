"""The caller's model, inputs and config are bitwise and attribute-wise as before an export, also after a failed one."""

import copy
import threading

import pytest
import torch

import transformers_exporters as te
from models import bert, decoder, ids


def attributes(model):
    return {name: {k: v for k, v in vars(m).items() if not k.startswith("_")} for name, m in model.named_modules()}


def buffers(model):
    return {name: value.clone() for name, value in model.named_buffers()}


@pytest.mark.parametrize("exporter", [te.DynamoExporter, te.OnnxExporter])
def test_a_longrope_model_computes_the_same_before_and_after(exporter):
    model, lengths = decoder("phi3_longrope"), (20, 32, 33, 40)
    with torch.no_grad():
        before = [model(input_ids=ids(1, n)).logits for n in lengths]
    exporter().export(model, {"input_ids": ids(1, 40)}, config={"dynamic": True})
    with torch.no_grad():
        after = [model(input_ids=ids(1, n)).logits for n in lengths]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_failed_export_leaves_everything_as_it_was():
    model = bert()
    model.train()
    model.config._attn_implementation = "eager"
    held, kept, config = attributes(model), buffers(model), copy.deepcopy(vars(model.config))
    forward = model.encoder.forward

    def broken(*args, **kwargs):
        raise RuntimeError("on purpose")

    inputs = {"input_ids": ids(2, 7), "labels": ids(2, 7)}
    with pytest.raises(te.UnsupportedModelError, match="labels"):
        te.DynamoExporter().export(model, inputs)
    assert set(inputs) == {"input_ids", "labels"}
    model.encoder.forward = broken
    with pytest.raises(te.TraceError, match="on purpose"):
        te.DynamoExporter().export(model, {"input_ids": ids(2, 7)}, config={"dynamic": True})
    model.encoder.__dict__.pop("forward")
    assert model.encoder.forward == forward
    assert model.training and attributes(model) == held
    assert all(torch.equal(value, kept[name]) for name, value in buffers(model).items())
    assert vars(model.config) == config
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_train_mode_is_exported_as_eval_and_left():
    model = bert(hidden_dropout_prob=0.5)
    model.train()
    exported = te.DynamoExporter().export_model(model, {"input_ids": ids(2, 7)}, config={"dynamic": True})
    assert model.training
    first, second = (exported(input_ids=ids(2, 7)).last_hidden_state for _ in range(2))
    assert torch.equal(first, second)


def test_flash_attention_is_traced_as_sdpa_and_put_back():
    model = decoder("llama")
    model.config._attn_implementation_internal = "flash_attention_2"
    exported = te.DynamoExporter().export_model(model, {"input_ids": ids(2, 7)}, config={"dynamic": True})
    assert model.config._attn_implementation == "flash_attention_2"
    with torch.no_grad():
        wanted = decoder("llama")(input_ids=ids(3, 5)).logits
    torch.testing.assert_close(exported(input_ids=ids(3, 5)).logits, wanted, atol=1e-5, rtol=1e-4)


def test_two_threads_export_at_once_and_torch_is_as_before():
    import transformers.cache_utils as cache_utils

    update, split = cache_utils.DynamicLayer.update, torch.Tensor.__getitem__
    results, errors = {}, []

    def work(name, model):
        try:
            exported = te.DynamoExporter().export_model(model, {"input_ids": ids(1, 7)}, config={"dynamic": True})
            results[name] = exported(input_ids=ids(3, 5)).logits
        except Exception as error:  # reported below: a thread cannot fail a test by itself
            errors.append(error)

    models = {"llama": decoder("llama"), "mistral": decoder("mistral")}
    threads = [threading.Thread(target=work, args=item) for item in models.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for name, model in models.items():
        with torch.no_grad():
            torch.testing.assert_close(results[name], model(input_ids=ids(3, 5)).logits, atol=1e-5, rtol=1e-4)
    assert cache_utils.DynamicLayer.update is update and torch.Tensor.__getitem__ is split
