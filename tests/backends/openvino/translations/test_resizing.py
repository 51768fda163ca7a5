"""Resizing equals torch's, also to one place along an axis."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

X = torch.randn(2, 3, 5, 6, 7, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_resized_to_any_size(check: Any, mode: str, align: bool) -> None:
    axes = {"linear": 1, "trilinear": 3}.get(mode, 2)

    class Resized(torch.nn.Module):
        def forward(self, x: torch.Tensor, like: torch.Tensor) -> Any:
            to = F.interpolate(x, size=like.shape[1:], mode=mode, align_corners=align)
            return to, F.interpolate(x, scale_factor=1.5, mode=mode, align_corners=align)

    x = X[(..., *[0] * (3 - axes))]
    others = [{"x": x, "like": torch.zeros(2, *sizes[:axes])} for sizes in ((1, 1, 1), (2, 1, 9), (1, 5, 1))]
    check(Resized(), {"x": x, "like": torch.zeros(2, *(3, 8, 4)[:axes])}, *others)
