"""NNCF on `openvino.Model`: compressed weights, or full int8 with measured ranges."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..doors import Requirement
from ..errors import ConfigError
from .contract import Calibration, Quantizer
from .sensitivity import Product, most_sensitive

if TYPE_CHECKING:
    from ..backends.contract import Lowered

MODES = ("int8", "int4", "static")


@dataclass(kw_only=True)
class NNCFOpenVINOQuantizer(Quantizer):
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
    requires: ClassVar[Mapping[str, Requirement]] = {"nncf": Requirement("3.2", "3.4.0")}

    mode: str = "int8"
    group_size: int = 32
    symmetric: bool = False
    ratio: float = 0.81
    model_type: str | None = "transformer"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"NNCFOpenVINOQuantizer.mode must be one of {', '.join(MODES)}, got {self.mode!r}.")
        if self.model_type not in ("transformer", None):
            raise ConfigError(f"model_type must be 'transformer' or None, got {self.model_type!r}.")

    @property
    def calibrates(self) -> bool:
        return self.mode == "static"

    def quantize_lowered(self, lowered: Lowered, calibration: Calibration) -> Lowered:
        if self.mode != "static":
            with quiet():
                return dataclasses.replace(lowered, program=self._compressed(lowered.program))
        if lowered.program.get_sinks():
            raise ConfigError(
                f"{lowered.spec.name} keeps its cache inside of the engine, where no calibration data reaches it: quantize "
                "with mode 'int8' or 'int4', or export with stateful=False."
            )
        import nncf

        ports = {tensor.name: tensor.port for tensor in lowered.spec.inputs}
        feeds = [
            {ports[name]: torch.as_tensor(value).detach().cpu().numpy() for name, value in feed.items()}
            for feed in calibration.feeds(lowered.spec)
        ]
        with quiet():
            made = nncf.quantize(
                lowered.program,
                nncf.Dataset(feeds),
                subset_size=len(feeds),
                model_type=nncf.ModelType.TRANSFORMER if self.model_type else None,
            )
        return dataclasses.replace(lowered, program=made)

    def _compressed(self, model: Any) -> Any:
        if self.mode == "int8" or self.ratio == 1:
            return compress(self, model)
        import nncf

        precise = most_sensitive(_products(model), 1 - self.ratio)
        scope = nncf.IgnoredScope(names=sorted(precise)) if precise else None
        model = compress(dataclasses.replace(self, ratio=1.0), model, scope)
        return compress(dataclasses.replace(self, mode="int8"), model)  # what is still float


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


def compress(options: Any, model: Any, ignored: Any = None) -> Any:
    """`nncf.compress_weights` with `mode`, `group_size`, `symmetric` and `ratio` of a quantizer's options."""
    import nncf

    kinds = nncf.CompressWeightsMode
    if options.mode == "int8":
        return nncf.compress_weights(model, mode=kinds.INT8_SYM if options.symmetric else kinds.INT8_ASYM)
    return nncf.compress_weights(
        model,
        mode=kinds.INT4_SYM if options.symmetric else kinds.INT4_ASYM,
        group_size=options.group_size,
        ratio=options.ratio,
        ignored_scope=ignored,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """NNCF logs tables of its decisions and draws progress bars on stdout."""
    import nncf  # noqa: F401 - sets its logger's level when it is imported

    logger = logging.getLogger("nncf")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)
