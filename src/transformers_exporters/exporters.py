"""The public exporters: thin over the pipeline, the same interface for every backend."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from .configs import AutoExportConfig, ExportConfig
from .doors import Backend, find_backend
from .errors import ConfigError, InputError
from .hf.exported import ExportedModel
from .pipeline import export_model

__all__ = [
    "AutoHfExporter",
    "DynamoExporter",
    "ExecutorchExporter",
    "HfExporter",
    "OnnxExporter",
    "OpenVINOExporter",
]

Inputs = Mapping[str, Any]
Config = ExportConfig | Mapping[str, Any] | None


class HfExporter(ABC):
    """Exports models to one format. Subclasses name the format; everything else is in its backend's folder.

    Args:
        config: The config used where a call passes none.

    Raises:
        MissingBackendError: If the backend's packages are missing or too old.
    """

    export_format: ClassVar[str]

    def __init__(self, config: Config = None) -> None:
        self._config = config

    @property
    def backend(self) -> Backend:
        """The backend behind this exporter."""
        return find_backend(self.export_format)

    def export(self, model: torch.nn.Module, inputs: Inputs, config: Config = None) -> Any:
        """Export one graph.

        Args:
            model: A `PreTrainedModel`, or any module that `decompose_for_generation` returned. Left as it was.
            inputs: Forward kwargs, as for `model(**inputs)`; caches, flags and nested containers included. Left as
                they were.
            config: The export config, or a dict of its fields.

        Returns:
            The backend's own program: `ExportedProgram`, `ONNXProgram`, `ExecutorchProgramManager`, `openvino.Model`.

        Raises:
            TraceError: If the model cannot be traced; names the model source line.
            LoweringError: If an op has no translation; names the op and the line.
            UnsupportedModelError: If the inputs ask for a loss.
        """
        (component,) = self.export_model(model, inputs, self.check_config(config)).components.values()
        return component.program

    def export_for_generation(
        self,
        model: torch.nn.Module,
        inputs: Inputs,
        config: Config | Mapping[str, Config] = None,
        *,
        generation_config: Any = None,
        multi_token_decode: bool = False,
        logits_to_keep: int | None = None,
    ) -> dict[str, Any]:
        """Export the graphs that generation needs.

        Args:
            model: A model with `generate`.
            inputs: Generate kwargs, as for `model.generate(**inputs)`; small representative values suffice.
            config: One config for all components, or a dict from component name to config.
            generation_config: Used for the capture; `cache_implementation="static"` gives a fixed-size cache.
            multi_token_decode: Keep the decode graph's query axis dynamic: one token, several, or a whole prompt.
            logits_to_keep: How many of the last positions' logits each graph returns; 0 for all of them. By default what
                `generate` asks for: the last one for a prompt, all with `multi_token_decode`.

        Returns:
            The backend's program by component name.
        """
        exported = self.export_model(
            model,
            inputs,
            config,
            for_generation=True,
            generation_config=generation_config,
            multi_token_decode=multi_token_decode,
            logits_to_keep=logits_to_keep,
        )
        return {name: component.program for name, component in exported.components.items()}

    def export_model(
        self,
        model: torch.nn.Module,
        inputs: Inputs,
        config: Config | Mapping[str, Config] = None,
        *,
        for_generation: bool = False,
        generation_config: Any = None,
        multi_token_decode: bool = False,
        logits_to_keep: int | None = None,
        tokenizer: Any = None,
    ) -> ExportedModel:
        """Export, and return an `ExportedModel` to call, generate with and save.

        Args:
            model: See `export`.
            inputs: Forward kwargs, or generate kwargs with `for_generation=True`.
            config: See `export` and `export_for_generation`.
            for_generation: Export the graphs that generation needs instead of one forward graph.
            generation_config: See `export_for_generation`.
            multi_token_decode: See `export_for_generation`.
            logits_to_keep: See `export_for_generation`.
            tokenizer: A tokenizer or processor to save with the artifact; by default the files of the checkpoint
                directory are copied.
        """
        return export_model(
            model,
            inputs,
            self.backend,
            self._configs(config),
            for_generation=for_generation,
            generation_config=generation_config,
            multi_token_decode=multi_token_decode,
            logits_to_keep=logits_to_keep,
            tokenizer=tokenizer,
        )

    def check_config(self, config: Config = None) -> ExportConfig:
        """This exporter's config of what a caller passed. Raises `ConfigError` for another backend's config."""
        expected: type[ExportConfig] = self.backend.load("config")
        config = self._config if config is None else config
        if config is None:
            return expected()
        if isinstance(config, Mapping):
            return expected.from_dict(config)
        if not isinstance(config, expected):
            raise ConfigError(f"{type(self).__name__} takes a {expected.__name__}, got a {type(config).__name__}.")
        return config

    def _configs(self, config: Config | Mapping[str, Config]) -> ExportConfig | dict[str, ExportConfig]:
        nested = isinstance(config, Mapping) and any(isinstance(v, ExportConfig | Mapping) for v in config.values())
        shapes_only = isinstance(config, Mapping) and "dynamic_shapes" in config
        if isinstance(config, Mapping) and nested and not shapes_only:
            return {name: self.check_config(item) for name, item in config.items()}
        return self.check_config(config)


class DynamoExporter(HfExporter):
    """Exports to `torch.export.ExportedProgram`; see `DynamoConfig`."""

    export_format = "dynamo"


class OnnxExporter(HfExporter):
    """Exports to `torch.onnx.ONNXProgram`; see `OnnxConfig`."""

    export_format = "onnx"


class ExecutorchExporter(HfExporter):
    """Exports to `executorch.exir.ExecutorchProgramManager`; see `ExecutorchConfig`."""

    export_format = "executorch"


class OpenVINOExporter(HfExporter):
    """Exports to `openvino.Model`; see `OpenVINOConfig`."""

    export_format = "openvino"


_EXPORTERS: dict[str, type[HfExporter]] = {
    cls.export_format: cls for cls in (DynamoExporter, OnnxExporter, ExecutorchExporter, OpenVINOExporter)
}


class AutoHfExporter:
    """Picks the exporter by config."""

    @staticmethod
    def from_config(config: ExportConfig | Mapping[str, Any]) -> HfExporter:
        """The exporter of a config, or of a dict with `export_format`. Third-party backends get a plain `HfExporter`.

        Raises:
            ConfigError: If the format is missing or unknown; lists the registered ones.
        """
        if isinstance(config, Mapping):
            config = AutoExportConfig.from_dict(config)
        if not isinstance(config, ExportConfig):
            raise InputError(f"from_config takes an export config or a dict, got a {type(config).__name__}.")
        format = config.export_format
        known = _EXPORTERS.get(format)
        if known is None:
            find_backend(format)
            known = type(f"{format.title()}Exporter", (HfExporter,), {"export_format": format})
        return known(config)
