"""What `--quantize int8|int4|static-int8` means for each format, and which quantizers a format has."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError
from .contract import Quantizer

#: Every shipped quantizer, by class name, and the module of this folder that holds it.
SHIPPED: Mapping[str, str] = {
    "NNCFOnnxQuantizer": "nncf_onnx",
    "NNCFOpenVINOQuantizer": "nncf_openvino",
    "NNCFTorchFXQuantizer": "nncf_torch_fx",
    "OnnxRuntimeQuantizer": "onnxruntime",
    "PT2EQuantizer": "pt2e",
    "TorchaoQuantizer": "torchao",
}

#: Recipe -> format -> quantizer and its options. `docs/quantization.md` has the measured size, speed and accuracy of each.
RECIPES: Mapping[str, Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "int8": {
        "dynamo": ("TorchaoQuantizer", {"scheme": "int8"}),
        "onnx": ("OnnxRuntimeQuantizer", {"mode": "int8"}),
        "openvino": ("NNCFOpenVINOQuantizer", {"mode": "int8"}),
        "executorch": ("TorchaoQuantizer", {"scheme": "int8"}),
    },
    "int4": {
        "dynamo": ("TorchaoQuantizer", {"scheme": "int4"}),
        "onnx": ("OnnxRuntimeQuantizer", {"mode": "int4"}),
        "openvino": ("NNCFOpenVINOQuantizer", {"mode": "int4"}),
        "executorch": ("TorchaoQuantizer", {"scheme": "8da4w"}),
    },
    "static-int8": {
        "dynamo": ("PT2EQuantizer", {}),
        "onnx": ("OnnxRuntimeQuantizer", {"mode": "static"}),
        "openvino": ("NNCFOpenVINOQuantizer", {"mode": "static"}),
        "executorch": ("PT2EQuantizer", {}),
    },
}


def find_quantizer(name: str) -> type[Quantizer]:
    """A shipped quantizer's class by its name. Raises `ConfigError` listing the names if there is none."""
    if name not in SHIPPED:
        raise ConfigError(f"Unknown quantizer {name!r}; the shipped ones are {', '.join(SHIPPED)}.")
    found: type[Quantizer] = getattr(importlib.import_module(f"{__package__}.{SHIPPED[name]}"), name)
    return found


def quantizers_for(export_format: str) -> list[str]:
    """Names of the shipped quantizers that support a format."""
    return [name for name in SHIPPED if export_format in find_quantizer(name).formats]


def recipe(name: str, export_format: str, **options: Any) -> Quantizer:
    """The quantizer of a recipe.

    Args:
        name: `int8` or `int4` (weights only, or with activations quantized on the fly where the engine needs that), or
            `static-int8` (weights and activations, with measured ranges).
        export_format: The format that is exported to.
        options: More options of the quantizer, `calibration_dataset` for one.

    Raises:
        ConfigError: If there is no such recipe, or none for the format; says which there are.
    """
    if name not in RECIPES:
        raise ConfigError(f"Unknown recipe {name!r}; choose {', '.join(RECIPES)}, or set a config's quantizer.")
    if export_format not in RECIPES[name]:
        known = ", ".join(RECIPES[name])
        raise ConfigError(f"There is no recipe {name!r} for {export_format!r}, only for {known}; set its quantizer.")
    quantizer, fixed = RECIPES[name][export_format]
    return find_quantizer(quantizer)(**fixed, **options)


def from_dict(fields: Mapping[str, Any]) -> Quantizer:
    """Rebuild what `Quantizer.to_dict` gave. Raises `ConfigError` if the type or an option is unknown."""
    options = dict(fields)
    cls = find_quantizer(str(options.pop("type", "")))
    try:
        return cls(**options)
    except TypeError as error:
        raise ConfigError(f"{cls.__name__}: {error}.") from error
