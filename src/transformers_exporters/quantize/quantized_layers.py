"""Linear and embedding layers whose weights are whole numbers, in the place of a model's own while it is exported.

A layer keeps its object, its place and its name; only its class changes, to a subclass that has the numbers as parameters
and computes with them. Code that reads `layer.weight` gets the float tensor that they stand for, so a model that
multiplies with the weight itself is quantized as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import Embedding, Linear, Module, Parameter

#: A layer's own class, its numbers, and what it computes.
_PREFIX = "quantized_"


class Numbers(Protocol):
    """A weight as whole numbers: how they are kept, and how a layer computes with them."""

    def tensors(self) -> Mapping[str, torch.Tensor]:
        """What is stored, by name. Two layers that share a weight give the same tensors."""
        ...

    def dequantized(self, held: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The float weight [out, in]."""
        ...

    def linear(self, held: Mapping[str, torch.Tensor], inputs: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """`inputs: float [..., in]` times the weight, plus the bias: float [..., out]."""
        ...

    def embedding(self, held: Mapping[str, torch.Tensor], indices: torch.Tensor) -> torch.Tensor:
        """Rows of the weight: float [*indices, in]."""
        ...


@dataclass(frozen=True)
class _Original:
    cls: type[Module]
    parameters: dict[str, Any]
    attributes: frozenset[str]


@contextmanager
def quantized_layers(model: Module, quantize: Callable[[str, Module], Numbers | None]) -> Iterator[int]:
    """While held, the layers for which `quantize` gives numbers compute with them; afterwards they are what they were.

    Layers are converted one by one, and the float weight is only looked at: of a mapped checkpoint nothing stays in memory.

    Args:
        model: Any module.
        quantize: Called with the name and the module of each `Linear` and `Embedding`; None leaves it as it is.

    Yields:
        How many layers were converted.
    """
    originals: dict[Module, _Original] = {}
    try:
        for name, layer in list(model.named_modules()):
            if isinstance(layer, Linear | Embedding) and isinstance(layer._parameters.get("weight"), Parameter):
                numbers = quantize(name, layer)
                if numbers is not None:
                    originals[layer] = _Original(type(layer), dict(layer._parameters), frozenset(vars(layer)))
                    _convert(layer, numbers)
        yield len(originals)
    finally:
        for layer, original in originals.items():
            layer.__class__ = original.cls
            layer._parameters.clear()
            layer._parameters.update(original.parameters)
            for added in vars(layer).keys() - original.attributes:
                del vars(layer)[added]


def _convert(layer: Module, numbers: Numbers) -> None:
    """Give a layer its numbers in place of its weight."""
    cls = type(layer)
    del layer._parameters["weight"]
    for name, tensor in numbers.tensors().items():
        layer._parameters[f"{_PREFIX}{name}"] = Parameter(tensor, requires_grad=False)
    members: dict[str, Any] = {"weight": property(_weight), "quantized_numbers": numbers}
    if cls.forward is Linear.forward:
        members["forward"] = _linear
    elif cls.forward is Embedding.forward and _is_plain(layer):
        members["forward"] = _embedding
    layer.__class__ = type(
        cls.__name__, (cls,), {**members, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    )


def _is_plain(layer: Any) -> bool:
    """Whether an embedding does nothing but look up."""
    return layer.max_norm is None


def _held(layer: Any) -> dict[str, torch.Tensor]:
    return {name.removeprefix(_PREFIX): value for name, value in layer._parameters.items() if name.startswith(_PREFIX)}


def _weight(layer: Any) -> torch.Tensor:
    weight: torch.Tensor = layer.quantized_numbers.dequantized(_held(layer))
    return weight


def _linear(layer: Any, input: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = layer.quantized_numbers.linear(_held(layer), input, layer.bias)
    return result


def _embedding(layer: Any, input: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = layer.quantized_numbers.embedding(_held(layer), input)
    return result
