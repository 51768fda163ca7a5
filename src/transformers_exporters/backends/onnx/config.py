"""The ONNX export's config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...configs import ExportConfig
from ...errors import ConfigError

# The converter writes opset 18 and newer; 25 is the newest that onnx 1.23 knows and ONNX Runtime 1.32 loads.
OLDEST_OPSET, NEWEST_OPSET = 18, 25


@dataclass(kw_only=True)
class OnnxConfig(ExportConfig):
    """Config of `OnnxExporter`.

    Args:
        opset_version: The ONNX opset to write, 18 to 25; None takes the converter's own choice.
        optimize: Fold constants and remove what is unused after the conversion.

    Raises:
        ConfigError: If a field has the wrong type or value.
    """

    export_format: ClassVar[str] = "onnx"

    opset_version: int | None = None
    optimize: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        opset = self.opset_version
        if opset is not None and not (isinstance(opset, int) and OLDEST_OPSET <= opset <= NEWEST_OPSET):
            raise ConfigError(f"opset_version must be {OLDEST_OPSET} to {NEWEST_OPSET}, got {opset!r}.")
