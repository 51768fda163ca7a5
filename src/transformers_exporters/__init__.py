"""Export any Hugging Face `PreTrainedModel` to PyTorch, ONNX, OpenVINO and ExecuTorch, and prove the result.

Every public name is imported when it is first used (PEP 562): `import transformers_exporters` alone imports neither
torch, nor transformers, nor an engine. Using a name whose packages are missing raises `MissingBackendError`, which
says what to install.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backends.dynamo.config import DynamoConfig as DynamoConfig
    from .backends.executorch.config import ExecutorchConfig as ExecutorchConfig
    from .backends.onnx.config import OnnxConfig as OnnxConfig
    from .backends.openvino.config import OpenVINOConfig as OpenVINOConfig
    from .configs import AutoExportConfig as AutoExportConfig
    from .configs import ExportConfig as ExportConfig
    from .doors import Backend as Backend
    from .doors import register_backend as register_backend
    from .errors import ArtifactError as ArtifactError
    from .errors import ConfigError as ConfigError
    from .errors import ExportError as ExportError
    from .errors import FrozenAxisError as FrozenAxisError
    from .errors import InputError as InputError
    from .errors import LoweringError as LoweringError
    from .errors import MissingBackendError as MissingBackendError
    from .errors import TraceError as TraceError
    from .errors import UnsupportedModelError as UnsupportedModelError
    from .errors import VerificationError as VerificationError
    from .errors import WorkaroundError as WorkaroundError
    from .exporters import AutoHfExporter as AutoHfExporter
    from .exporters import DynamoExporter as DynamoExporter
    from .exporters import ExecutorchExporter as ExecutorchExporter
    from .exporters import HfExporter as HfExporter
    from .exporters import OnnxExporter as OnnxExporter
    from .exporters import OpenVINOExporter as OpenVINOExporter
    from .hf.exported import ExportedModel as ExportedModel
    from .hf.pytrees import register_pytree_node as register_pytree_node
    from .prepare.split import decompose_for_generation as decompose_for_generation
    from .quantize.contract import Calibration as Calibration
    from .quantize.contract import Quantizer as Quantizer
    from .quantize.nncf_onnx import NNCFOnnxQuantizer as NNCFOnnxQuantizer
    from .quantize.nncf_openvino import NNCFOpenVINOQuantizer as NNCFOpenVINOQuantizer
    from .quantize.nncf_torch_fx import NNCFTorchFXQuantizer as NNCFTorchFXQuantizer
    from .quantize.onnxruntime import OnnxRuntimeQuantizer as OnnxRuntimeQuantizer
    from .quantize.pt2e import PT2EQuantizer as PT2EQuantizer
    from .quantize.torchao import TorchaoQuantizer as TorchaoQuantizer
    from .verification import verify as verify

#: Where each public name lives: module -> names. The one list of what is public.
_PUBLIC = {
    ".backends.dynamo.config": ("DynamoConfig",),
    ".backends.executorch.config": ("ExecutorchConfig",),
    ".backends.onnx.config": ("OnnxConfig",),
    ".backends.openvino.config": ("OpenVINOConfig",),
    ".configs": ("AutoExportConfig", "ExportConfig"),
    ".doors": ("Backend", "register_backend"),
    ".errors": (
        "ArtifactError",
        "ConfigError",
        "ExportError",
        "FrozenAxisError",
        "InputError",
        "LoweringError",
        "MissingBackendError",
        "TraceError",
        "UnsupportedModelError",
        "VerificationError",
        "WorkaroundError",
    ),
    ".exporters": (
        "AutoHfExporter",
        "DynamoExporter",
        "ExecutorchExporter",
        "HfExporter",
        "OnnxExporter",
        "OpenVINOExporter",
    ),
    ".hf.exported": ("ExportedModel",),
    ".prepare.split": ("decompose_for_generation",),
    ".hf.pytrees": ("register_pytree_node",),
    ".quantize.contract": ("Calibration", "Quantizer"),
    ".quantize.nncf_onnx": ("NNCFOnnxQuantizer",),
    ".quantize.nncf_openvino": ("NNCFOpenVINOQuantizer",),
    ".quantize.nncf_torch_fx": ("NNCFTorchFXQuantizer",),
    ".quantize.onnxruntime": ("OnnxRuntimeQuantizer",),
    ".quantize.pt2e": ("PT2EQuantizer",),
    ".quantize.torchao": ("TorchaoQuantizer",),
    ".verification": ("verify",),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

#: Packages that a name may miss, and the pip extra that brings each; "" is the package's own dependencies.
_EXTRA_OF = {
    "torch": "",
    "transformers": "",
    "safetensors": "",
    "onnx": "onnx",
    "onnx_ir": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "openvino": "openvino",
    "executorch": "executorch",
    "nncf": "quantize",
    "torchao": "quantize",
}

__version__ = importlib.metadata.version("transformers-exporters")
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_HOME[name], __name__), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA_OF:
            raise
        from .errors import MissingBackendError

        target = f"transformers-exporters[{_EXTRA_OF[package]}]" if _EXTRA_OF[package] else "transformers-exporters"
        raise MissingBackendError(f'{name} needs the package {package}: run pip install "{target}".') from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
