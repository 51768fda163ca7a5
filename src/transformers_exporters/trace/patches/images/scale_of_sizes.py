"""`interpolate(x, scale_factor=height / native)`: the scale follows the sizes, instead of the number that it had in the trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor
from transformers import vision_utils

from ....workarounds import Workaround
from ...idioms.quotients import cut_product

_KERNELS = {"linear": "bilinear", "bilinear": "bilinear", "trilinear": "bilinear", "bicubic": "bicubic"}


def with_open_scale(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.nn.functional.interpolate`; scales that are plain numbers are left to it."""

    @functools.wraps(original)
    def interpolate(
        x: Tensor,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        antialias: bool = False,
    ) -> Tensor:
        scales = list(scale_factor) if isinstance(scale_factor, list | tuple) else [scale_factor] * (x.dim() - 2)
        if not any(isinstance(scale, SymFloat | SymInt) for scale in scales):
            return original(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
        products = [cut_product(old, scale) for old, scale in zip(x.shape[2:], scales, strict=True)]
        new = [whole for whole, _ in products]
        if (
            align_corners
            or recompute_scale_factor
            or antialias
            or mode == "area"
            or all(exact for _, exact in products)
        ):
            return original(x, new, None, mode, align_corners, None, antialias)
        for axis, (scale, length) in enumerate(zip(scales, new, strict=True), start=2):
            x = _along(x, axis, scale, length, mode)
        return x

    return interpolate


def _along(x: Tensor, axis: int, scale: Any, length: Any, mode: str) -> Tensor:
    """Resample one axis to `length` places that lie `1 / scale` apart, as torch does with a scale that leaves a rest."""
    side: Any = x.shape[axis]
    place = torch.arange(length, device=x.device)
    factor = torch.scalar_tensor(scale, dtype=torch.float32, device=x.device)
    # torch's CPU kernels (2.13, `UpSampleKernel.cpp`, `UpSample.h`) do not look at the scale at these sizes.
    if mode in ("nearest", "linear", "bilinear", "trilinear"):
        factor = torch.where(_equal(length, side), 1.0, factor)
    if mode == "nearest":
        factor = torch.where(_equal(length, 2 * side), 2.0, factor)
    if mode not in _KERNELS:
        middle = 0.5 if mode == "nearest-exact" else 0.0
        nearest = ((place + middle) / factor).floor().to(torch.int64).clamp(max=side - 1)
        return x.index_select(axis, nearest)
    taps, weights = vision_utils._interpolation_axis_taps_weights(place, factor * side, side, _KERNELS[mode], False)
    picked = x.index_select(axis, taps.flatten()).unflatten(axis, taps.shape)
    shape = (*taps.shape, *(1 for _ in range(x.dim() - 1 - axis)))
    return (picked * weights.reshape(shape).to(x.dtype)).sum(axis + 1)


def _equal(size: Any, other: Any) -> Tensor:
    """Whether two sizes are the same, asked in the graph."""
    return torch.scalar_tensor(size - other, dtype=torch.int64) == 0


WORKAROUND = Workaround(
    reason="A scale is a number to torch's interpolation ops: one that is made of sizes was fixed without a word, and the result "
    "with it (position tables resampled by `scale_factor=height / native`).",
    upstream="none: `upsample_*.vec` take scales as plain floats (torch 2.13)",
    targets=("torch.nn.functional:interpolate",),
    apply=with_open_scale,
)
