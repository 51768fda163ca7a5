"""The quantizers that work on a backend's own model: a reloaded artifact is small, agrees, and generates."""

from pathlib import Path
from typing import Any

import pytest
import torch

import transformers_exporters as te
from models import bert, decoder, left_padded

SIZES = {"vocab_size": 512, "hidden_size": 128, "intermediate_size": 256}


def saved(model: Any, inputs: Any, quantizer: Any, format: str, directory: Path, **options: Any) -> te.ExportedModel:
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    config.quantizer = quantizer
    te.AutoHfExporter.from_config(config).export_model(model, inputs, config, **options).save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory)


def weight_bytes(directory: Path) -> int:
    return sum(f.stat().st_size for f in directory.iterdir() if f.suffix in (".safetensors", ".bin", ".onnx"))


WEIGHTS_ONLY = [
    ("onnx", te.OnnxRuntimeQuantizer(mode="int8"), 0.40, 0.999),
    ("onnx", te.OnnxRuntimeQuantizer(mode="int4"), 0.33, 0.95),
    ("onnx", te.OnnxRuntimeQuantizer(mode="dynamic"), 0.75, 0.999),  # embeddings stay float32
    ("onnx", te.NNCFOnnxQuantizer(mode="int8"), 0.40, 0.999),
    ("onnx", te.NNCFOnnxQuantizer(mode="int4"), 0.35, 0.95),
    ("openvino", te.NNCFOpenVINOQuantizer(mode="int8"), 0.35, 0.999),
    ("openvino", te.NNCFOpenVINOQuantizer(mode="int4"), 0.30, 0.95),
]


@pytest.mark.parametrize(
    "format,quantizer,size,cosine",
    WEIGHTS_ONLY,
    ids=lambda v: getattr(v, "mode", v) if not isinstance(v, float) else "",
)
def test_weights_only(format: str, quantizer: Any, size: float, cosine: float, tmp_path: Path) -> None:
    model, inputs = decoder("llama", tie_word_embeddings=True, **SIZES), left_padded(2, 6, (0, 2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    exported = saved(model, inputs, quantizer, format, tmp_path / "artifact", for_generation=True)
    report = te.verify(model, tmp_path / "artifact", inputs)
    assert report.ok and {row.case for row in report.rows if row.component == "decode"}
    assert min(row.cosine for row in report.rows if row.cosine is not None) > cosine
    # One file for both components, and the embedding in it once.
    assert weight_bytes(tmp_path / "artifact") < size * 4 * model.num_parameters() + 100_000
    tokens = exported.generate(**inputs, max_new_tokens=4, do_sample=False)
    assert tokens.shape == (2, 10)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    "format,quantizer",
    [
        ("onnx", te.OnnxRuntimeQuantizer(mode="static", calibration_dataset=[])),
        ("onnx", te.NNCFOnnxQuantizer(mode="static", calibration_dataset=[])),
        ("openvino", te.NNCFOpenVINOQuantizer(mode="static", calibration_dataset=[])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_static(format: str, quantizer: Any, tmp_path: Path) -> None:
    model = bert(hidden_size=64, intermediate_size=128)
    inputs = left_padded(2, 8, (0, 0))
    quantizer.calibration_dataset = [left_padded(2, size, (0, 0)) for size in (5, 8, 12)]
    saved(model, inputs, quantizer, format, tmp_path / "artifact")
    report = te.verify(model, tmp_path / "artifact", inputs)
    assert report.ok
    assert min(row.cosine for row in report.rows if row.output == "last_hidden_state") > 0.95
    products = {name for name in ("MatMul", "Gemm", "FakeQuantize") if name in _ops(format, tmp_path / "artifact")}
    assert products


def _ops(format: str, directory: Path) -> set[str]:
    if format == "openvino":
        import openvino

        return {op.get_type_name() for op in openvino.Core().read_model(directory / "model.xml").get_ops()}
    import onnx

    graph = onnx.load(directory / "model.onnx", load_external_data=False).graph
    found = {node.op_type for node in graph.node}
    assert "QuantizeLinear" in found and "DequantizeLinear" in found
    return found


def test_weights_of_a_checkpoint_are_not_linked_in(tmp_path: Path) -> None:
    """The values lie in a float32 file; the artifact must hold the quantized ones only."""
    from transformers_exporters.prepare.checkpoint import load_checkpoint

    decoder("llama", **SIZES).save_pretrained(tmp_path / "checkpoint")
    model, inputs = load_checkpoint(str(tmp_path / "checkpoint")), left_padded(2, 6, (0, 2))
    saved(model, inputs, te.OnnxRuntimeQuantizer(), "onnx", tmp_path / "artifact", for_generation=True)
    whole = (tmp_path / "checkpoint" / "model.safetensors").stat().st_size
    assert weight_bytes(tmp_path / "artifact") < 0.3 * whole + 100_000
    assert te.verify(model, tmp_path / "artifact", inputs).ok


def test_half_precision(tmp_path: Path) -> None:
    model = decoder("llama", **SIZES).half()
    inputs = left_padded(2, 6, (0, 2))
    saved(model, inputs, te.OnnxRuntimeQuantizer(mode="int4"), "onnx", tmp_path / "artifact")
    report = te.verify(model, tmp_path / "artifact", inputs)
    assert report.ok and min(row.cosine for row in report.rows if row.cosine is not None) > 0.95


def test_a_manifest_names_the_quantizer_and_a_bad_result_fails(tmp_path: Path) -> None:
    model, inputs = decoder("llama"), left_padded(2, 6, (0, 2))
    exported = saved(model, inputs, te.OnnxRuntimeQuantizer(mode="int8"), "onnx", tmp_path / "artifact")
    assert exported.manifest.config["quantizer"]["type"] == "OnnxRuntimeQuantizer"
    other = decoder("llama")
    torch.manual_seed(1)
    for parameter in other.parameters():
        parameter.data.normal_()
    report = te.verify(other, tmp_path / "artifact", inputs)
    assert not report.ok
    with pytest.raises(te.VerificationError, match="cosine similarity"):
        report.check()


def test_options_are_checked() -> None:
    for options, message in (
        ({"mode": "int2"}, "mode must be one of int8, int4"),
        ({"block_size": 24}, "power of two"),
        ({"ratio": 2}, "from 0 to 1"),
    ):
        with pytest.raises(te.ConfigError, match=message):
            te.OnnxRuntimeQuantizer(**options)
    with pytest.raises(te.ConfigError, match="symmetric=True"):
        te.NNCFOnnxQuantizer(mode="int4", symmetric=False)
    with pytest.raises(te.ConfigError, match="mode must be one of"):
        te.NNCFOpenVINOQuantizer(mode="int2")


def test_a_stateful_model_has_nowhere_to_calibrate(tmp_path: Path) -> None:
    model, inputs = decoder("llama"), left_padded(2, 6, (0, 2))
    quantizer = te.NNCFOpenVINOQuantizer(mode="static", calibration_dataset=[inputs])
    config = te.OpenVINOConfig(dynamic=True, stateful=True, quantizer=quantizer)
    with pytest.raises(te.ConfigError, match="stateful=False"):
        te.OpenVINOExporter().export_model(model, inputs, config, for_generation=True)
    weights = te.NNCFOpenVINOQuantizer(mode="int4")
    config = te.OpenVINOConfig(dynamic=True, stateful=True, quantizer=weights)
    exported = te.OpenVINOExporter().export_model(model, inputs, config, for_generation=True)
    exported.save_pretrained(tmp_path / "artifact")
    assert te.ExportedModel.from_pretrained(tmp_path / "artifact").generate(**inputs, max_new_tokens=3).shape == (2, 9)
