"""What surrounds an export does not reach the graph: the caller's torch modes, and how the model's tensors were made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import torch

import transformers_exporters as te
from models import decoder, left_padded

EXPORTERS = {
    "dynamo": (te.DynamoExporter, te.DynamoConfig),
    "onnx": (te.OnnxExporter, te.OnnxConfig),
    "openvino": (te.OpenVINOExporter, te.OpenVINOConfig),
    "executorch": (te.ExecutorchExporter, te.ExecutorchConfig),
}


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    held = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(held)


MODES = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "inference mode": torch.inference_mode,
    "another default dtype": lambda: default_dtype(torch.bfloat16),
    "another default device": lambda: torch.device("meta"),
}


def check(exported: te.ExportedModel, model: torch.nn.Module) -> None:
    inputs = left_padded(3, 9, (0, 4, 2))
    with torch.no_grad():
        wanted = model(**inputs).logits
    for given in (inputs, {name: tensor.numpy() for name, tensor in inputs.items()}):
        torch.testing.assert_close(exported(**given).logits, wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("format", ["dynamo", "onnx"])
@pytest.mark.parametrize("mode", MODES)
def test_the_graph_is_the_models_in_whatever_mode_it_is_exported(mode: str, format: str) -> None:
    model = decoder("llama")
    exporter, config = EXPORTERS[format]
    surrounding: AbstractContextManager[object] = MODES[mode]()
    with surrounding:
        exported = exporter().export_model(model, left_padded(2, 6, (0, 2)), config(dynamic=True))
    check(exported, model)


@pytest.mark.parametrize("format", EXPORTERS)
def test_a_model_that_was_made_in_inference_mode(format: str) -> None:
    exporter, config = EXPORTERS[format]
    with torch.inference_mode():
        model = decoder("llama")
        inputs = {name: tensor.clone() for name, tensor in left_padded(2, 6, (0, 2)).items()}
    weight = model.lm_head.weight
    exported = exporter().export_model(model, inputs, config(dynamic=True))
    check(exported, model)
    assert model.lm_head.weight is weight and weight.is_inference()


def test_a_type_without_kernels_is_told_with_what_to_do(tmp_path) -> None:
    model = decoder("llama").bfloat16()
    te.OnnxExporter().export_model(model, left_padded(2, 6, (0, 2)), te.OnnxConfig(dynamic=True)).save_pretrained(
        tmp_path
    )
    with pytest.raises(te.ArtifactError, match=r"model\.float\(\)"):
        te.ExportedModel.from_pretrained(tmp_path)(**left_padded(2, 6, (0, 2)))
