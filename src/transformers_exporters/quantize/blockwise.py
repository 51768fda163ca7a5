"""Integers for the rows of a weight, block by block, in the layout that ONNX Runtime's kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

# Scales that are tried for a block, as parts of the one that covers its whole range: clipping the outermost values
# makes the steps of all others finer.
_SHRINK = np.linspace(1.0, 0.8, 9, dtype=np.float32)
# Rows quantized at a time, so that the search needs a few MB and not a few copies of the weight.
_ROWS = 1024


@dataclass(frozen=True)
class Blocks:
    """A weight [rows, columns] in blocks along its columns.

    `value = scale * (integer - zero_point)`; without zero points it is `2 ** (bits - 1)`.

    Attributes:
        values: uint8 [rows, blocks, block_size * bits / 8]; of two 4-bit integers in a byte, the low half is the first.
        scales: The weight's dtype, [rows, blocks].
        zero_points: uint8 [rows, ceil(blocks * bits / 8)], packed like the values; None for symmetric blocks.
        bits: 4 or 8.
        block_size: Columns in a block; the last one is filled up with zeros.
        columns: Columns of the weight.
    """

    values: torch.Tensor
    scales: torch.Tensor
    zero_points: torch.Tensor | None
    bits: int
    block_size: int
    columns: int


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
    values = np.empty((rows, blocks, block_size * bits // 8), np.uint8)
    scales = np.empty((rows, blocks), np.float32)
    zeros = np.empty((rows, blocks), np.uint8)
    for start in range(0, rows, _ROWS):
        part = np.zeros((min(_ROWS, rows - start), blocks * block_size), np.float32)
        part[:, :columns] = weight[start : start + _ROWS].detach().float().cpu().numpy()
        integers, scale, zero = _search(part.reshape(-1, blocks, block_size), bits, symmetric)
        end = start + len(part)
        values[start:end] = _packed(integers, bits)
        scales[start:end], zeros[start:end] = scale, zero
    return Blocks(
        torch.from_numpy(values),
        torch.from_numpy(scales).to(weight.dtype),
        None if symmetric else torch.from_numpy(_packed(zeros, bits)),
        bits,
        block_size,
        columns,
    )


def _search(blocks: Any, bits: int, symmetric: bool) -> tuple[Any, Any, Any]:
    """Integers uint8 like `blocks`, scales and zero points [rows, blocks] of the best of the tried scales."""
    top, middle = 2**bits - 1, 2 ** (bits - 1)
    low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
    if symmetric:
        # The side that is farther from zero gets the one integer more that it has: -2**(bits-1).
        farthest = np.where(-low > high, low, high)
        full = -farthest / middle
    else:
        full = (high - low) / top
    full = np.where(full == 0, np.float32(1), full).astype(np.float32)
    best: tuple[Any, Any, Any] | None = None
    least: Any = None
    for shrink in _SHRINK if bits < 8 else _SHRINK[:1]:
        scale = full * shrink
        zero = np.full_like(scale, middle) if symmetric else np.clip(np.rint(-low / scale), 0, top)
        integers = np.clip(np.rint(blocks / scale[..., None]) + zero[..., None], 0, top)
        error = np.square((integers - zero[..., None]) * scale[..., None] - blocks).sum(-1)
        if best is None:
            best, least = (integers, scale, zero), error
            continue
        better = error < least
        least = np.where(better, error, least)
        best = (
            np.where(better[..., None], integers, best[0]),
            np.where(better, scale, best[1]),
            np.where(better, zero, best[2]),
        )
    assert best is not None
    return best[0].astype(np.uint8), best[1], best[2].astype(np.uint8)


def _packed(integers: Any, bits: int) -> Any:
    """uint8 with two 4-bit integers of the last axis in a byte, the first in the low half; 8-bit ones as they are."""
    if bits == 8:
        return integers
    if integers.shape[-1] % 2:
        integers = np.concatenate([integers, np.zeros_like(integers[..., :1])], axis=-1)
    return integers[..., ::2] | (integers[..., 1::2] << 4)
