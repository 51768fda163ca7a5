"""NNCF on the converted ONNX model: compressed weights, or full int8 with measured ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..doors import Requirement
from ..errors import ConfigError
from .contract import Calibration, Quantizer
from .nncf_openvino import MODES, compress, quiet

if TYPE_CHECKING:
    from ..backends.contract import Lowered


@dataclass(kw_only=True)
class NNCFOnnxQuantizer(Quantizer):
    """Quantizes an ONNX graph with NNCF; `OnnxRuntimeQuantizer` does the same with ONNX Runtime's own tools.

    Attributes:
        mode: `int8` and `int4` compress weights, which `DequantizeLinear` turns into floats; `static` puts
            `QuantizeLinear` and `DequantizeLinear` around weights and activations, with ranges measured on the calibration data.
        group_size: Values along a weight's input axis that share a scale. `int4`.
        symmetric: No zero points; always so with `int4`.
        ratio: The part of the weights that gets 4 bits; the others keep 8. `int4`.
        model_type: `transformer` keeps the ops that attention is sensitive in as they are; None does not. `static`.
    """

    formats: ClassVar[tuple[str, ...]] = ("onnx",)
    requires: ClassVar[Mapping[str, Requirement]] = {"nncf": Requirement("3.2", "3.4.0")}

    mode: str = "static"
    group_size: int = 32
    symmetric: bool = True
    ratio: float = 1.0
    model_type: str | None = "transformer"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"NNCFOnnxQuantizer.mode must be one of {', '.join(MODES)}, got {self.mode!r}.")
        if self.mode == "int4" and not self.symmetric:
            # onnxruntime 1.32.0 fuses them into a MatMulNBits whose unpacked zero points its own kernel refuses.
            raise ConfigError(
                "ONNX Runtime cannot open NNCF's 4-bit weights with zero points: use symmetric=True, or OnnxRuntimeQuantizer."
            )

    @property
    def calibrates(self) -> bool:
        return self.mode == "static"

    @contextmanager
    def quantize_model(self, model: torch.nn.Module) -> Iterator[None]:
        """Components share what was quantized while this is open."""
        from .values import Values

        self._values = Values()
        try:
            yield
        finally:
            del self._values

    def quantize_lowered(self, lowered: Lowered, calibration: Calibration) -> Lowered:
        from .onnx_files import numpy_feeds, quantized_by

        feeds = list(numpy_feeds(lowered.spec, calibration.feeds(lowered.spec))) if self.calibrates else []

        def quantize(source: Path, target: Path) -> None:
            import nncf
            import onnx

            model = onnx.load(source)
            with quiet():
                if self.mode != "static":
                    made: Any = compress(self, model)
                else:
                    made = nncf.quantize(
                        model,
                        nncf.Dataset(feeds),
                        subset_size=len(feeds),
                        model_type=nncf.ModelType.TRANSFORMER if self.model_type else None,
                    )
            onnx.save(made, target, save_as_external_data=True)

        return quantized_by(lowered, self._values, quantize)
