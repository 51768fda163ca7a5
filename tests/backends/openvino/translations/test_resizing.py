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


@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_a_weight_is_resized(check: Any, mode: str) -> None:
    """Position embeddings: the engine computes them when it opens the model."""
    axes = {"linear": 1, "trilinear": 3}.get(mode, 2)

    class Resized(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", X[(..., *[0] * (3 - axes))])

        def forward(self, x: torch.Tensor) -> Any:
            return x + F.interpolate(self.table, size=(4, 8, 3)[:axes], mode=mode)

    check(Resized(), {"x": torch.randn(2, 3, *(4, 8, 3)[:axes])})
