"""NNCF on `openvino.Model`: compressed weights, or full int8 with measured ranges."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import ConfigError
from .contract import Calibration
from .nncf import NNCFQuantizer
from .sensitivity import Product, most_sensitive

if TYPE_CHECKING:
    from ..backends.contract import Lowered


@dataclass(kw_only=True)
class NNCFOpenVINOQuantizer(NNCFQuantizer):
    """Quantizes an OpenVINO model.

    Attributes:
        mode: `int8` compresses weights to 8 bits a channel; `int4` to 4 bits a group, embeddings and the output projection
            to 8; both compute in float. `static` quantizes weights and activations with ranges measured on the
            calibration data.
        group_size: Values along a weight's input axis that share a scale. `int4`.
        symmetric: No zero points. `int8`, `int4`.
        ratio: The part of the products' values that gets 4 bits; the products that suffer most get 8. `int4`.
        model_type: `transformer` keeps the ops that attention is sensitive in as they are; None does not. `static`.
    """

    formats: ClassVar[tuple[str, ...]] = ("openvino",)

    ratio: float = 0.81

    def quantize_lowered(self, lowered: Lowered, calibration: Calibration) -> Lowered:
        if self.mode != "static":
            return dataclasses.replace(lowered, program=self._with_precise_products(lowered.program))
        if lowered.program.get_sinks():
            raise ConfigError(
                f"{lowered.spec.name} keeps its cache inside of the engine, where no calibration data reaches it: quantize "
                "with mode 'int8' or 'int4', or export with stateful=False."
            )
        feeds = list(calibration.arrays(lowered.spec))
        return dataclasses.replace(lowered, program=self.measured(lowered.program, feeds))

    def _with_precise_products(self, model: Any) -> Any:
        if self.mode == "int8" or self.ratio == 1:
            return self.compressed(model)
        import nncf

        precise = most_sensitive(_products(model), 1 - self.ratio)
        scope = nncf.IgnoredScope(names=sorted(precise)) if precise else None
        model = dataclasses.replace(self, ratio=1.0).compressed(model, scope)
        return dataclasses.replace(self, mode="int8").compressed(model)  # what is still float


def _products(model: Any) -> dict[str, Product]:
    """Products with a constant matrix by node name, but for the largest.

    Of a language model that is the one that gives logits, which NNCF gives 8 bits itself.
    """
    found: dict[str, Product] = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul":
            continue
        source = node.input_value(1).get_node()
        while source.get_type_name() in ("Convert", "Reshape", "Transpose"):
            source = source.input_value(0).get_node()
        shape = node.input_value(1).get_partial_shape()
        if source.get_type_name() == "Constant" and shape.rank.get_length() >= 2:
            rows, columns = (shape[axis].get_length() for axis in (-2, -1))
            if not node.get_attributes()["transpose_b"]:
                rows, columns = columns, rows
            found[node.get_friendly_name()] = Product(rows, columns)
    largest = max(found, key=lambda name: found[name].rows * found[name].columns, default="")
    return {name: product for name, product in found.items() if name != largest}
