"""User code that is never run, only type-checked: it is the public interface, as a user's editor sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformers_exporters import (
    ArtifactError,
    AutoExportConfig,
    AutoHfExporter,
    Backend,
    Calibration,
    ConfigError,
    DynamoConfig,
    DynamoExporter,
    ExecutorchConfig,
    ExecutorchExporter,
    ExportConfig,
    ExportedModel,
    ExportError,
    FrozenAxisError,
    HfExporter,
    InputError,
    LoweringError,
    MissingBackendError,
    NNCFOnnxQuantizer,
    NNCFOpenVINOQuantizer,
    NNCFTorchFXQuantizer,
    OnnxConfig,
    OnnxExporter,
    OnnxRuntimeQuantizer,
    OpenVINOConfig,
    OpenVINOExporter,
    PT2EQuantizer,
    Quantizer,
    TorchaoQuantizer,
    TraceError,
    UnsupportedModelError,
    VerificationError,
    WorkaroundError,
    decompose_for_generation,
    register_backend,
    register_pytree_node,
    verify,
)


def configs() -> list[ExportConfig]:
    config = AutoExportConfig.from_dict({"export_format": "onnx", "dynamic": True})
    text: str = config.to_json_string()
    fields: dict[str, Any] = config.to_dict()
    again: OnnxConfig = OnnxConfig.from_dict(fields)
    return [
        again,
        DynamoConfig(dynamic=True, strict=False, prefer_deferred_runtime_asserts_over_guards=True),
        OnnxConfig(dynamic_shapes={"input_ids": {0: text}}, opset_version=20, optimize=True),
        OpenVINOConfig(compress_to_fp16=False, stateful=True),
        ExecutorchConfig(backend="xnnpack", alloc_graph_input=False, alloc_graph_output=False),
    ]


def quantizers(dataset: list[dict[str, Any]], data: Calibration) -> list[Quantizer]:
    assert data.kwargs
    return [
        OnnxRuntimeQuantizer(mode="static", calibration_dataset=dataset),
        NNCFOnnxQuantizer(mode="int8"),
        NNCFOpenVINOQuantizer(mode="int4", group_size=64),
        NNCFTorchFXQuantizer(),
        PT2EQuantizer(),
        TorchaoQuantizer(scheme="8da4w"),
    ]


def exporters() -> list[HfExporter]:
    auto: HfExporter = AutoHfExporter.from_config({"export_format": "dynamo"})
    return [auto, DynamoExporter(), OnnxExporter(), OpenVINOExporter(), ExecutorchExporter()]


def export(model: nn.Module, inputs: dict[str, Any], directory: Path) -> torch.Tensor:
    exporter = OnnxExporter()
    config = OnnxConfig(dynamic=True)
    exporter.export(model, inputs, config=config)
    exporter.export_for_generation(model, inputs, config=config, multi_token_decode=True)
    exported: ExportedModel = exporter.export_model(model, inputs, config=config, for_generation=True)
    exported.save_pretrained(directory)
    loaded = ExportedModel.from_pretrained(directory, device="cpu", trust_remote_code=False)
    loaded(**inputs)
    loaded["decode"](**inputs)
    tokens: torch.Tensor = loaded.generate(**inputs, max_new_tokens=8)
    assert verify(model, directory).ok
    return tokens


def parts(model: nn.Module, inputs: dict[str, Any]) -> dict[str, tuple[nn.Module, dict[str, Any]]]:
    return decompose_for_generation(model, inputs, multi_token_decode=True)


def extend(backend: Backend, cache_class: type) -> None:
    register_backend(backend)
    register_pytree_node(cache_class)


def handle(error: ExportError) -> str:
    kinds: tuple[type[ExportError], ...] = (
        ArtifactError,
        ConfigError,
        FrozenAxisError,
        InputError,
        LoweringError,
        MissingBackendError,
        TraceError,
        UnsupportedModelError,
        VerificationError,
        WorkaroundError,
    )
    return type(error).__name__ if isinstance(error, kinds) else ""
