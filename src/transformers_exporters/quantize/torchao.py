"""Weights of linear layers and embeddings in 8 or 4 bits, through torchao, before the model is traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.nn import Embedding, Linear, Module

from ..doors import Requirement
from ..errors import ConfigError, UnsupportedModelError
from ..prepare.references import memory_key
from .contract import Quantizer
from .quantized_layers import Numbers, quantized_layers

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class _Scheme:
    formats: tuple[str, ...]
    bits: int
    dynamic: bool = False


#: Embeddings, and the last product where it shares their weight or gives logits, have 8 bits in every scheme.
SCHEMES: Mapping[str, _Scheme] = {
    "int8": _Scheme(("dynamo", "executorch"), 8),
    "int4": _Scheme(("dynamo",), 4),
    "8da8w": _Scheme(("executorch",), 8, dynamic=True),
    "8da4w": _Scheme(("executorch",), 4, dynamic=True),
}


@dataclass(kw_only=True)
class TorchaoQuantizer(Quantizer):
    """Weights in 8 or 4 bits; activations stay float, or are rounded to 8 bits token by token. Measures nothing.

    Args:
        scheme: `"int8"`: 8 bits, one scale a row. `"int4"`: 4 bits, a scale and an offset for each group of a row.
            `"8da8w"` and `"8da4w"`: the same with inputs of products rounded to 8 bits while the model runs, which is how
            XNNPACK has its fastest products.
        group_size: Weights of a row that share a scale in 4 bits; a multiple of 32. A layer whose rows it does not divide
            gets 8 bits.
    """

    formats: ClassVar[tuple[str, ...]] = ("dynamo", "executorch")
    requires: ClassVar[Mapping[str, Requirement]] = {"torchao": Requirement(minimum="0.17", tested="0.18.0")}

    scheme: str = "int8"
    group_size: int = 32

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise ConfigError(f"TorchaoQuantizer has no scheme {self.scheme!r}; choose {', '.join(SCHEMES)}.")
        if not isinstance(self.group_size, int) or self.group_size < 32 or self.group_size % 32:
            raise ConfigError(f"group_size must be a multiple of 32, got {self.group_size!r}.")

    def check(self, export_format: str) -> None:
        """See `Quantizer.check`; also refuses a scheme that the format has no kernels for."""
        super().check(export_format)
        if export_format not in SCHEMES[self.scheme].formats:
            known = ", ".join(name for name, scheme in SCHEMES.items() if export_format in scheme.formats)
            raise ConfigError(f"The scheme {self.scheme!r} is not for {export_format}; choose {known}.")

    @contextmanager
    def quantize_model(self, model: Module) -> Iterator[None]:
        """See `Quantizer.quantize_model`.

        Raises:
            UnsupportedModelError: If a weight has no values (a model on `meta`), or no layer can be quantized.
        """
        choice = _Choice(model, SCHEMES[self.scheme], self.group_size)
        with quantized_layers(model, choice) as count:
            if not count:
                raise UnsupportedModelError(
                    f"{type(model).__name__} has no linear layer or embedding with float weights to quantize; export it "
                    "without a quantizer."
                )
            yield


class _Choice:
    """Which numbers a layer gets; layers that share a weight share its numbers."""

    def __init__(self, model: Module, scheme: _Scheme, group: int) -> None:
        self._scheme = scheme
        self._group = group
        self._known: dict[Any, Numbers] = {}
        self._exact = _kept_in_8_bits(model)

    def __call__(self, name: str, layer: Module) -> Numbers | None:
        weight: torch.Tensor = layer.weight  # type: ignore[assignment]
        if weight.dtype not in _FLOATS or weight.dim() != 2:
            return None
        if weight.device.type == "meta":
            raise UnsupportedModelError(
                f"The weight of {name} has no values (it is on the meta device): load the checkpoint before quantizing."
            )
        key = memory_key(weight)
        wide = isinstance(layer, Embedding) or key in self._exact or weight.shape[1] % self._group != 0
        dynamic = self._scheme.dynamic and isinstance(layer, Linear)
        bits = 8 if wide else self._scheme.bits
        known = self._known.get((key, bits))
        if known is None:
            known = self._known[key, bits] = self._numbers(weight.detach(), bits)
        return _with_dynamic(known, dynamic)

    def _numbers(self, weight: torch.Tensor, bits: int) -> Numbers:
        from .rounding import groups4, packed4, rows8

        if bits == 8:
            return rows8(weight)
        return groups4(weight, self._group) if self._scheme.dynamic else packed4(weight, self._group)


def _with_dynamic(numbers: Numbers, dynamic: bool) -> Numbers:
    from .weight_numbers import Rows8

    return Rows8(numbers.values, numbers.scale, True) if isinstance(numbers, Rows8) and dynamic else numbers


def _kept_in_8_bits(model: Module) -> set[Any]:
    """The weights of the embeddings and of the layer that gives logits: the most sensitive ones."""
    layers: list[Any] = [layer for layer in model.modules() if isinstance(layer, Embedding)]
    logits: Any = getattr(model, "get_output_embeddings", None)  # a PreTrainedModel's; other modules may have none
    if callable(logits):
        layers.append(logits())
    return {memory_key(layer.weight) for layer in layers if isinstance(getattr(layer, "weight", None), torch.Tensor)}
