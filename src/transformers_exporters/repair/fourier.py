"""Discrete Fourier transforms of real and imaginary parts, as products with matrices of cosines and sines.

Quadratic in the transformed axis, and as exact as the FFT: the angles' turns are reduced in whole numbers. The definitions are
torch's `_fft_r2c`, `_fft_c2c` and `_fft_c2r`, whose `normalization` is 0 (none), 1 (by the root of the size) or 2 (by the size).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def r2c(x: Tensor, dims: Sequence[int], normalization: int, onesided: bool) -> tuple[Tensor, Tensor]:
    """Of a real tensor; `onesided` keeps the first half of the last transformed axis, of size n // 2 + 1."""
    *others, last = dims
    count = x.shape[last] // 2 + 1 if onesided else x.shape[last]
    cosine, sine = _matrices(x, x.shape[last], count)
    scale = _scale([x.shape[d] for d in dims], normalization, x)
    real, imaginary = _times(x, cosine, last), _times(x, -sine, last)
    if others:
        real, imaginary = c2c(real, imaginary, others, 0, True)
    return _scaled(real, scale), _scaled(imaginary, scale)


def c2c(
    real: Tensor, imaginary: Tensor, dims: Sequence[int], normalization: int, forward: bool
) -> tuple[Tensor, Tensor]:
    """Of a complex tensor, along each axis in turn; `forward=False` is the inverse."""
    scale = _scale([real.shape[d] for d in dims], normalization, real)
    for dim in dims:
        cosine, sine = _matrices(real, real.shape[dim], real.shape[dim])
        sine = sine if forward else -sine
        real, imaginary = (
            _times(real, cosine, dim) + _times(imaginary, sine, dim),
            _times(imaginary, cosine, dim) - _times(real, sine, dim),
        )
    return _scaled(real, scale), _scaled(imaginary, scale)


def c2r(real: Tensor, imaginary: Tensor, dims: Sequence[int], normalization: int, size: Any) -> Tensor:
    """The inverse of a one-sided transform, to `size` real elements along the last of `dims`."""
    *others, last = dims
    scale = _scale([*[real.shape[d] for d in others], size], normalization, real)
    if others:
        real, imaginary = c2c(real, imaginary, others, 0, False)
    half = size // 2 + 1
    real, imaginary = real.narrow(last, 0, half), imaginary.narrow(last, 0, half)
    cosine, sine = (matrix.transpose(0, 1) for matrix in _matrices(real, size, half))
    # Every frequency stands for its mirror image too, but for 0 and, in an even number of elements, the highest.
    index = torch.arange(half, device=real.device)
    twice = torch.where((index == 0) | (2 * index == _tensor(size, real)), 1.0, 2.0).to(real.dtype).unsqueeze(1)
    return _scaled(_times(real, twice * cosine, last) - _times(imaginary, twice * sine, last), scale)


def _matrices(like: Tensor, size: Any, count: Any) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi k n / size: [size, count], in `like`'s dtype, computed in float32 at least."""
    wide = torch.float64 if like.dtype == torch.float64 else torch.float32
    index, whole = torch.arange(size, device=like.device).unsqueeze(1), _tensor(size, like)
    turns = torch.remainder(index * torch.arange(count, device=like.device), whole)
    angle = turns.to(wide) * (2 * math.pi) / whole.to(wide)
    return torch.cos(angle).to(like.dtype), torch.sin(angle).to(like.dtype)


def _tensor(size: Any, like: Tensor) -> Tensor:
    """A size as int64 [1]: backends take sizes among a tensor's sizes, but not all as operands of arithmetic on tensors."""
    return torch.arange(size, device=like.device)[-1:] + 1


def _times(x: Tensor, matrix: Tensor, dim: int) -> Tensor:
    return torch.matmul(x.transpose(dim, -1), matrix).transpose(dim, -1)


def _scale(sizes: Sequence[Any], normalization: int, like: Tensor) -> Tensor | None:
    """What the transform is divided by: [1]."""
    if normalization == 0:
        return None
    count = math.prod([_tensor(size, like) for size in sizes]).to(like.dtype)  # type: ignore[union-attr]
    return torch.sqrt(count) if normalization == 1 else count


def _scaled(x: Tensor, scale: Tensor | None) -> Tensor:
    return x if scale is None else x / scale
