"""NNCF on the converted ONNX model: compressed weights, or full int8 with measured ranges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..errors import ConfigError
from .contract import Calibration
from .nncf import NNCFQuantizer
from .values import SharesValues

if TYPE_CHECKING:
    from ..backends.contract import Lowered


@dataclass(kw_only=True)
class NNCFOnnxQuantizer(SharesValues, NNCFQuantizer):
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

    mode: str = "static"
    symmetric: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode == "int4" and not self.symmetric:
            # onnxruntime 1.32.0 fuses them into a MatMulNBits whose unpacked zero points its own kernel refuses.
            raise ConfigError(
                "ONNX Runtime cannot open NNCF's 4-bit weights with zero points: use symmetric=True, or OnnxRuntimeQuantizer."
            )

    def quantize_lowered(self, lowered: Lowered, calibration: Calibration) -> Lowered:
        from .onnx_files import quantized_by

        feeds = list(calibration.arrays(lowered.spec)) if self.calibrates else []

        def quantize(source: Path, target: Path) -> None:
            import onnx

            model = onnx.load(source)
            made = self.measured(model, feeds) if self.calibrates else self.compressed(model)
            onnx.save(made, target, save_as_external_data=True)

        return quantized_by(lowered, self.values, quantize)
