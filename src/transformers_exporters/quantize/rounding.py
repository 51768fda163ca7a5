"""From a float weight to whole numbers, with torchao's rounding."""

from __future__ import annotations

import torch
from torchao.quantization.quant_primitives import (
    MappingType,
    _choose_qparams_affine_tinygemm,
    choose_qparams_affine,
    quantize_affine,
)

from .weight_numbers import Groups4, Packed4, Rows8

#: Rows that are rounded at once: a large embedding is never in memory as floats a second time.
_ROWS = 4096


def rows8(weight: torch.Tensor) -> Rows8:
    """`weight: float [out, in]` in 8 bits, one scale a row."""
    parts = [_rows8(part) for part in weight.split(_ROWS)]
    return Rows8(torch.cat([values for values, _ in parts]), torch.cat([scale for _, scale in parts]))


def _rows8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    block = (1, weight.shape[1])
    scale, zero = choose_qparams_affine(
        weight, MappingType.SYMMETRIC, block, torch.int8, -127, 127, zero_point_dtype=torch.int8
    )
    return quantize_affine(weight, block, scale, zero, torch.int8, -127, 127), scale.flatten()


def groups4(weight: torch.Tensor, group: int) -> Groups4:
    """`weight: float [out, in]` in 4 bits with a scale and an offset for each group."""
    scale, offset = _groups(weight, group)
    # XNNPACK keeps bfloat16 scales: what is rounded here must be what it computes with.
    scale = scale.to(torch.bfloat16).to(weight.dtype)
    rounded = rows8(offset)
    values = _values(weight, scale, rounded.dequantized(rounded.tensors()))
    return Groups4(values, scale, rounded)


def packed4(weight: torch.Tensor, group: int) -> Packed4:
    """`weight: float [out, in]` in 4 bits with a scale and an offset for each group, two values in a byte."""
    stored = torch.float16 if weight.dtype == torch.float32 else weight.dtype
    scale, offset = (each.to(stored) for each in _groups(weight, group))
    nibbles = (_values(weight, scale, offset) + 8).to(torch.uint8)
    left, right = nibbles.chunk(2, 1)
    return Packed4(left | right << 4, scale, offset, weight.dtype)


def _groups(weight: torch.Tensor, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale and offset [out, groups], so that the group's range is -8 to 7 steps around the offset."""
    block = (1, group)
    scale, offset = _choose_qparams_affine_tinygemm(
        weight,
        MappingType.ASYMMETRIC,
        block,
        torch.int8,
        0,
        15,
        scale_dtype=weight.dtype,
        zero_point_dtype=weight.dtype,
    )
    groups = weight.shape[1] // group
    return scale.reshape(-1, groups), offset.reshape(-1, groups)


def _values(weight: torch.Tensor, scale: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """int8 [out, in] from -8 to 7: the nearest steps."""
    scale = scale.clamp(min=torch.finfo(scale.dtype).smallest_normal)  # a group of equal weights has none
    groups = weight.unflatten(1, (scale.shape[1], -1))
    steps = (groups - offset.unsqueeze(2)) / scale.unsqueeze(2)
    return steps.round_().clamp_(-8, 7).to(torch.int8).flatten(1)
