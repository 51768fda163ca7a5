"""The OpenVINO export's config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...configs import ExportConfig
from ...errors import ConfigError


@dataclass(kw_only=True)
class OpenVINOConfig(ExportConfig):
    """Config of `OpenVINOExporter`.

    Args:
        compress_to_fp16: Store float32 weights in 16 bits; the computation stays float32.
        stateful: Keep the cache inside the model, as variables that live from call to call, with an input `beam_idx`
            that reorders them for beam search. True makes every component stateful that takes and returns a cache; False
            none; None leaves it to the exporter, which at present means False.

    Raises:
        ConfigError: If a field has the wrong type.
    """

    export_format: ClassVar[str] = "openvino"

    compress_to_fp16: bool = False
    stateful: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stateful not in (None, True, False):
            raise ConfigError(f"stateful must be True, False or None, got {self.stateful!r}.")
