"""Where the pixels of a moved image come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def affine_grid(theta: Tensor, size: Sequence[Any], align: bool) -> Tensor:
    """theta: [batch, axes, axes + 1]; size: batch, channels, then the image's. Returns [*image, axes], `x` first."""
    batch, _, *image = size
    axes = []
    for place, length in enumerate(image):
        shape = [1] * len(image)
        shape[place] = -1
        axes.append(_places(length, align, theta.dtype).reshape(shape).expand(image))
    ones = torch.ones_like(axes[0])
    base = torch.stack([*reversed(axes), ones], -1).reshape(-1, len(image) + 1)
    return torch.matmul(base, theta.transpose(1, 2)).reshape(batch, *image, len(image))


def _places(length: Any, align: bool, dtype: torch.dtype) -> Tensor:
    """From -1 to 1: the middles of as many pixels, or, `align`ed, of the first and the last at the ends."""
    count = torch.scalar_tensor(length, dtype=dtype)
    steps = 2 * torch.arange(length).to(dtype) + 1 - count
    return steps / ((count - 1).clamp(min=1) if align else count)


RULES = {"aten.affine_grid_generator.default": affine_grid}
