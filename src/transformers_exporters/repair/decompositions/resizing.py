"""Antialiased resizing: one product with a matrix of filter weights an axis.

The filters and the way in which they widen when an image shrinks are PIL's, which torch's antialiased kernels follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

#: The filter's reach at scale 1, in pixels.
_BILINEAR, _BICUBIC = 1.0, 2.0


def bilinear(x: Tensor, size: Sequence[int] | None, align: bool, factors: Sequence[float] | None) -> Tensor:
    """Triangle filter. x: [batch, channels, height, width]."""
    return _resize(x, size, align, factors, _BILINEAR, lambda t: torch.clamp(1 - t, min=0.0))


def bicubic(x: Tensor, size: Sequence[int] | None, align: bool, factors: Sequence[float] | None) -> Tensor:
    """Keys' cubic filter with a = -0.5. x: [batch, channels, height, width]."""

    def weight(t: Tensor) -> Tensor:
        near = (1.5 * t - 2.5) * t * t + 1
        far = ((-0.5 * t + 2.5) * t - 4) * t + 2
        return torch.where(t < 1, near, torch.where(t < 2, far, torch.zeros_like(t)))

    return _resize(x, size, align, factors, _BICUBIC, weight)


def _resize(
    x: Tensor,
    size: Sequence[int] | None,
    align: bool,
    factors: Sequence[float] | None,
    reach: float,
    weight: Callable[[Tensor], Tensor],
) -> Tensor:
    given = list(factors) if factors is not None else [None, None]
    sizes = list(size) if size is not None else [int(x.shape[i - 2] * f) for i, f in enumerate(given) if f is not None]
    rows = _matrix(x, x.shape[-2], sizes[0], align, given[0], reach, weight)
    columns = _matrix(x, x.shape[-1], sizes[1], align, given[1], reach, weight)
    return torch.matmul(torch.matmul(rows, x), columns.transpose(0, 1))


def _matrix(
    x: Tensor,
    old: int,
    new: int,
    align: bool,
    factor: float | None,
    reach: float,
    weight: Callable[[Tensor], Tensor],
) -> Tensor:
    """Float32 [new, old]: what each old pixel contributes to each new one; rows sum to 1."""
    if align:
        ratio = torch.scalar_tensor((old - 1), dtype=x.dtype) / torch.scalar_tensor(new - 1, dtype=x.dtype).clamp(min=1)
    elif factor is not None:
        ratio = torch.scalar_tensor(1 / factor, dtype=x.dtype)
    else:
        ratio = torch.scalar_tensor(old, dtype=x.dtype) / torch.scalar_tensor(new, dtype=x.dtype)
    wide = torch.clamp(ratio, min=1.0)
    center = (ratio * (torch.arange(new, dtype=x.dtype) + 0.5)).unsqueeze(1)
    pixel = (torch.arange(old, dtype=x.dtype) + 0.5).unsqueeze(0)
    # The kernel visits the whole pixels between the rounded ends of the filter's reach, so a pixel past them counts 0.
    low = torch.floor(center - reach * wide + 0.5)
    high = torch.floor(center + reach * wide + 0.5)
    inside = (pixel - 0.5 >= low) & (pixel - 0.5 < high)
    weights = torch.where(inside, weight(torch.abs(pixel - center) / wide), 0.0)
    return weights / weights.sum(-1, keepdim=True)


def _sized(
    rule: Callable[..., Tensor],
) -> Callable[[Tensor, Sequence[int], bool, float | None, float | None], Tensor]:
    """The overload that names both sizes, and the scale of either axis where it differs from the ratio of the sizes."""

    def sized(x: Tensor, size: Sequence[int], align: bool, h: float | None = None, w: float | None = None) -> Tensor:
        return rule(x, size, align, None if h is None or w is None else [h, w])

    return sized


RULES = {
    "aten._upsample_bilinear2d_aa.vec": bilinear,
    "aten._upsample_bilinear2d_aa.default": _sized(bilinear),
    "aten._upsample_bicubic2d_aa.vec": bicubic,
    "aten._upsample_bicubic2d_aa.default": _sized(bicubic),
}
