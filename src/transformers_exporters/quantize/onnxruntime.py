"""ONNX Runtime's quantization: 8- and 4-bit weights, dynamic, and static with measured ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..doors import Requirement
from ..errors import ConfigError
from .contract import Calibration
from .values import SharesValues

if TYPE_CHECKING:
    from ..backends.contract import Lowered

_MODES = ("int8", "int4", "dynamic", "static")


@dataclass(kw_only=True)
class OnnxRuntimeQuantizer(SharesValues):
    """Quantizes an ONNX graph for ONNX Runtime.

    Attributes:
        mode: `int8` and `int4` quantize the weights of matrix products and embeddings, block by block (`MatMulNBits`,
            `GatherBlockQuantized`). `dynamic` quantizes weights per channel and activations as they come
            (`MatMulInteger`). `static` puts `QuantizeLinear` and `DequantizeLinear` around the ops of `op_types`, with
            ranges measured on the calibration data; an engine that runs QDQ graphs will do.
        block_size: Values along a weight's input axis that share a scale, a power of two from 16 on. `int8`, `int4`.
        symmetric: No zero points with 4 bits; 8 have none. `int4`.
        accuracy_level: 4 lets the kernel round activations to int8 on the fly, which is fastest on CPUs with such
            instructions; 0 computes in the activations' dtype. `int8`, `int4`.
        ratio: The part of the products' values that gets 4 bits; embeddings, output projections tied to them, and the
            products that suffer most get 8. `int4`.
        op_types: ONNX ops whose inputs are quantized. `dynamic`, `static`.
        reduce_range: 7-bit weights, for x86 CPUs without VNNI instructions, whose 8-bit sums saturate. `static`.
    """

    formats: ClassVar[tuple[str, ...]] = ("onnx",)
    requires: ClassVar[Mapping[str, Requirement]] = {
        "onnxruntime": Requirement(
            "1.23", "1.32.0", builds=("onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-qnn")
        )
    }

    mode: str = "int8"
    block_size: int = 32
    symmetric: bool = False
    accuracy_level: int = 4
    ratio: float = 0.77
    op_types: tuple[str, ...] = ("MatMul", "Gemm", "Conv")
    reduce_range: bool = False

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ConfigError(f"OnnxRuntimeQuantizer.mode must be one of {', '.join(_MODES)}, got {self.mode!r}.")
        if self.block_size < 16 or self.block_size & (self.block_size - 1):
            raise ConfigError(f"block_size must be a power of two from 16 on, got {self.block_size!r}.")
        if not 0 <= self.ratio <= 1:
            raise ConfigError(f"ratio must be from 0 to 1, got {self.ratio!r}.")
        self.op_types = tuple(self.op_types)

    @property
    def calibrates(self) -> bool:
        return self.mode == "static"

    def quantize_lowered(self, lowered: Lowered, calibration: Calibration) -> Lowered:
        values = self.values
        if self.mode in ("dynamic", "static"):
            from .onnx_files import quantized_by

            feeds = calibration.arrays(lowered.spec) if self.calibrates else None
            return quantized_by(lowered, values, partial(self._quantize_file, feeds=feeds))
        from .onnx_weights import Options, quantize_weights

        options = Options(
            bits=4 if self.mode == "int4" else 8,
            precise_bits=8,
            ratio=self.ratio,
            block_size=self.block_size,
            symmetric=self.symmetric,
            accuracy_level=self.accuracy_level,
        )
        made = quantize_weights(lowered.program.model, values.of(lowered), values.blocks, options)
        return values.placed(lowered, made)

    def _quantize_file(self, source: Path, target: Path, *, feeds: Iterator[dict[str, Any]] | None) -> None:
        """Run ONNX Runtime's own quantizer from file to file."""
        from onnxruntime import quantization

        common: dict[str, Any] = {"per_channel": True, "op_types_to_quantize": list(self.op_types)}
        if feeds is None:
            quantization.quantize_dynamic(source, target, weight_type=quantization.QuantType.QInt8, **common)
            return
        quantization.quantize_static(
            source,
            target,
            _reader(feeds),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            reduce_range=self.reduce_range,
            **common,
        )


def _reader(feeds: Iterator[dict[str, Any]]) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def get_next(self) -> dict[str, Any] | None:
            return next(feeds, None)

    return Reader()
