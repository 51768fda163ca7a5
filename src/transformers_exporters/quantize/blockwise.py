"""Integers for the rows of a weight, block by block, in the layout that ONNX Runtime's kernels read."""

from __future__ import annotations

from dataclasses import dataclass

import torch

# Scales that are tried for a 4-bit block, as parts of the one that covers its whole range: clipping the outermost values
# makes the steps of all others finer.
_SHRINK = tuple(1.05 - 0.025 * step for step in range(15))
# Values searched at a time: the search's temporaries then fit a processor's cache.
_VALUES = 1 << 18


@dataclass(frozen=True)
class Blocks:
    """A weight [rows, columns] in blocks along its columns.

    `value = scale * (integer - zero_point)`; without zero points it is `2 ** (bits - 1)`.

    Attributes:
        values: uint8 [rows, blocks, block_size * bits / 8]; of two 4-bit integers in a byte, the low half is the first.
        scales: float16 [rows, blocks]: 11 bits of mantissa are more than 4- or 8-bit integers can tell apart.
        zero_points: uint8 [rows, ceil(blocks * bits / 8)], packed like the values; None for symmetric blocks.
        bits: 4 or 8.
        block_size: Columns in a block; the last one is filled up with zeros.
        columns: Columns of the weight.
        dtype: The weight's.
        error: Sum of the squared errors divided by the sum of the squared values.
    """

    values: torch.Tensor
    scales: torch.Tensor
    zero_points: torch.Tensor | None
    bits: int
    block_size: int
    columns: int
    dtype: torch.dtype
    error: float


def quantize_rows(weight: torch.Tensor, *, bits: int, block_size: int, symmetric: bool) -> Blocks:
    """Round a weight to integers, each block with the scale that has the smallest squared error.

    Args:
        weight: float [rows, columns]; may be mapped from a file: it is read once, some rows at a time.
        bits: 4 or 8.
        block_size: Columns that share a scale: a power of two from 16 on.
        symmetric: Without zero points.
    """
    rows, columns = weight.shape
    blocks = -(-columns // block_size)
    values = torch.empty((rows, blocks, block_size * bits // 8), dtype=torch.uint8)
    scales = torch.empty((rows, blocks), dtype=torch.float16)
    zeros = torch.empty((rows, blocks), dtype=torch.uint8)
    errors = squares = 0.0
    step = max(1, _VALUES // (blocks * block_size))
    for start in range(0, rows, step):
        part = weight[start : start + step].detach().float().cpu()
        part = torch.nn.functional.pad(part, (0, blocks * block_size - columns)).view(-1, blocks, block_size)
        best = _search(part, bits, symmetric)
        end = start + len(part)
        values[start:end] = _packed(best.integers.to(torch.uint8), bits)
        scales[start:end], zeros[start:end] = best.scale, best.zero
        errors += float(best.error.sum())
        squares += float(part.square().sum())
    zero_points = None if symmetric else _packed(zeros, bits)
    error = errors / squares if squares else 0.0
    return Blocks(values, scales, zero_points, bits, block_size, columns, weight.dtype, error)


def _search(blocks: torch.Tensor, bits: int, symmetric: bool) -> _Best:
    """Try scales and zero points for each block.

    8 bits need no search. With 4, each try is refined once: given the integers, the scale of the least squared error is
    the quotient of two sums (linear regression through the zero point).
    """
    top, middle = 2**bits - 1, 2 ** (bits - 1)
    low, high = blocks.amin(-1).clamp(max=0), blocks.amax(-1).clamp(min=0)
    # The side that is farther from zero gets the one integer more that it has: -2**(bits-1).
    full = torch.where(-low > high, low, high) / -middle if symmetric else (high - low) / top
    # A float16 below 6e-5 loses its mantissa, block by block of what is practically zero.
    full = torch.where(full.abs() < 2**-14, 1.0, full)
    best = _Best(blocks, top)
    for shrink in _SHRINK if bits < 8 else (1.0,):
        scale = full * shrink
        exact = torch.full_like(scale, middle) if symmetric else (-low / scale).clamp(0, top)
        for zero in (exact.floor(), exact.ceil()) if bits < 8 and not symmetric else (exact.round(),):
            offsets = best.offer(scale, zero)
            if bits < 8:
                fitted = (offsets * blocks).sum(-1) / offsets.square().sum(-1).clamp(min=1)
                best.offer(torch.where(fitted.abs() < 2**-14, scale, fitted), zero)
    return best


class _Best:
    """The tries with the least squared error, block by block."""

    def __init__(self, blocks: torch.Tensor, top: int) -> None:
        self.blocks, self.top = blocks, top
        self.error = torch.full(blocks.shape[:2], torch.inf)
        self.integers = torch.zeros_like(blocks)
        self.scale = torch.ones(blocks.shape[:2])
        self.zero = torch.zeros(blocks.shape[:2])

    def offer(self, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
        """Keep this try where it is better; returns its integers minus the zero points."""
        scale = scale.half().float()  # as it will be stored
        wide, offset = scale[..., None], zero[..., None]
        integers = (self.blocks / wide).round_().add_(offset).clamp_(0, self.top)
        offsets = integers - offset
        error = (offsets * wide).sub_(self.blocks).square_().sum(-1)
        better = error < self.error
        self.error = torch.where(better, error, self.error)
        self.integers = torch.where(better[..., None], integers, self.integers)
        self.scale, self.zero = torch.where(better, scale, self.scale), torch.where(better, zero, self.zero)
        return offsets


def _packed(integers: torch.Tensor, bits: int) -> torch.Tensor:
    """uint8 with two 4-bit integers of the last axis in a byte, the first in the low half; 8-bit ones as they are."""
    if bits == 8:
        return integers
    if integers.shape[-1] % 2:
        integers = torch.nn.functional.pad(integers, (0, 1))
    return integers[..., ::2] | (integers[..., 1::2] << 4)
