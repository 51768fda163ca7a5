"""Weights as whole numbers: 8 bits a row, or 4 bits in groups of a row, in forms that the engines' kernels take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers torch.ops.quantized_decomposed
from torch.nn.functional import linear

_Held = Mapping[str, torch.Tensor]
_decomposed = torch.ops.quantized_decomposed


@dataclass(frozen=True, eq=False)
class Rows8:
    """8 bits, one scale a row: `weight = values * scale`.

    Attributes:
        values: int8 [out, in].
        scale: float [out], in the weight's dtype.
        dynamic: Round the inputs of products to 8 bits as well, with a range of their own for each token.
    """

    values: torch.Tensor
    scale: torch.Tensor
    dynamic: bool = False

    def tensors(self) -> _Held:
        """See `Numbers`. The zero points are zeros; engines want to see them."""
        return {"values": self.values, "scale": self.scale, "zero_point": _zeros(self.scale.shape)}

    def dequantized(self, held: _Held) -> torch.Tensor:
        """See `Numbers`."""
        weight: torch.Tensor = _decomposed.dequantize_per_channel.default(
            held["values"], held["scale"], held["zero_point"], 0, -128, 127, torch.int8, out_dtype=held["scale"].dtype
        )
        return weight

    def linear(self, held: _Held, inputs: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """See `Numbers`."""
        return linear(rounded_by_token(inputs) if self.dynamic else inputs, self.dequantized(held), bias)

    def embedding(self, held: _Held, indices: torch.Tensor) -> torch.Tensor:
        """See `Numbers`: the rows are looked up before they become floats."""
        scale = torch.nn.functional.embedding(indices, held["scale"].unsqueeze(1))
        return torch.nn.functional.embedding(indices, held["values"]).to(scale.dtype) * scale


@dataclass(frozen=True, eq=False)
class Groups4:
    """4 bits in groups of a row: `weight = values * scale + offset`, as XNNPACK can compute it.

    XNNPACK multiplies with `values * scale` only (blocks without a zero point). A group's offset is added to each product
    with the group's inputs, which is the offset times the sum of these inputs: one small product more. It makes the numbers
    as exact as 4 bits with a zero point are.

    Attributes:
        values: int8 [out, in], from -8 to 7.
        scale: float [out, groups].
        offset: The offsets [out, groups], 8 bits a row.
        dynamic: As in `Rows8`; XNNPACK has no other product for these weights.
    """

    values: torch.Tensor
    scale: torch.Tensor
    offset: Rows8
    dynamic: bool = True

    @property
    def group(self) -> int:
        """Weights in one group."""
        return self.values.shape[1] // self.scale.shape[1]

    def tensors(self) -> _Held:
        """See `Numbers`."""
        own = {"values": self.values, "scale": self.scale, "zero_point": _zeros(self.scale.shape)}
        sums = {"sums": _sums(self.values.shape[1], self.group, self.scale.dtype)}
        return {**own, **sums, **{f"offset_{name}": tensor for name, tensor in self.offset.tensors().items()}}

    def dequantized(self, held: _Held) -> torch.Tensor:
        """See `Numbers`."""
        groups = held["values"].unflatten(1, (-1, self.group)).to(held["scale"].dtype)
        offset = self.offset.dequantized(_inner(held, "offset_"))
        return (groups * held["scale"].unsqueeze(2) + offset.unsqueeze(2)).flatten(1)

    def linear(self, held: _Held, inputs: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """See `Numbers`."""
        weight = _decomposed.dequantize_per_channel_group.default(
            held["values"], held["scale"], held["zero_point"], -8, 7, torch.int8, self.group, held["scale"].dtype
        )
        offsets = self.offset.linear(_inner(held, "offset_"), linear(inputs, held["sums"]), None)
        return linear(rounded_by_token(inputs) if self.dynamic else inputs, weight, bias) + offsets

    def embedding(self, held: _Held, indices: torch.Tensor) -> torch.Tensor:
        """See `Numbers`."""
        return torch.nn.functional.embedding(indices, self.dequantized(held))


@dataclass(frozen=True, eq=False)
class Packed4:
    """4 bits in groups of a row, two in a byte, in torch's own operators: `weight = (nibble - 8) * scale + offset`.

    The low nibbles are the left half of a row and the high ones the right half, so that unpacking moves whole rows.

    Attributes:
        packed: uint8 [out, in / 2].
        scale: 16-bit float [out, groups].
        offset: 16-bit float [out, groups].
        dtype: The weight's.
    """

    packed: torch.Tensor
    scale: torch.Tensor
    offset: torch.Tensor
    dtype: torch.dtype = torch.float32

    def tensors(self) -> _Held:
        """See `Numbers`."""
        return {"packed": self.packed, "scale": self.scale, "offset": self.offset}

    def dequantized(self, held: _Held) -> torch.Tensor:
        """See `Numbers`."""
        packed, scale, offset = held["packed"], held["scale"].to(self.dtype), held["offset"].to(self.dtype)
        values = torch.cat([packed & 15, packed >> 4], 1).to(scale.dtype) - 8
        return (values.unflatten(1, (scale.shape[1], -1)) * scale.unsqueeze(2) + offset.unsqueeze(2)).flatten(1)

    def linear(self, held: _Held, inputs: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """See `Numbers`."""
        return linear(inputs, self.dequantized(held), bias)

    def embedding(self, held: _Held, indices: torch.Tensor) -> torch.Tensor:
        """See `Numbers`."""
        return torch.nn.functional.embedding(indices, self.dequantized(held))


def rounded_by_token(inputs: torch.Tensor) -> torch.Tensor:
    """`inputs: float [..., size]` rounded to 8 bits with the range of each token: the form that XNNPACK recognises."""
    scale, zero = _decomposed.choose_qparams_per_token_asymmetric.default(inputs, torch.int8)
    values = _decomposed.quantize_per_token.default(inputs, scale, zero, -128, 127, torch.int8)
    rounded: torch.Tensor = _decomposed.dequantize_per_token.default(
        values, scale, zero, -128, 127, torch.int8, inputs.dtype
    )
    return rounded


def _inner(held: _Held, prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in held.items() if name.startswith(prefix)}


@cache
def _zeros(shape: Any) -> torch.Tensor:
    """int8 zeros; one tensor for all weights of a shape."""
    return torch.zeros(shape, dtype=torch.int8)


@cache
def _sums(size: int, group: int, dtype: torch.dtype) -> torch.Tensor:
    """[size / group, size]: a product with it adds up the members of each group; one tensor for all weights."""
    return torch.eye(size // group, dtype=dtype).repeat_interleave(group, 1)
