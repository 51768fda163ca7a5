"""`trace.patches.images.scale_of_sizes`: tables of positions that follow the image."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.images.scale_of_sizes"


class Positions(torch.nn.Module):
    """Adds positions of 7 x 5 places, resampled to the image's, in a number of ways."""

    def __init__(self, mode: str, more: float) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(1, 3, 7, 5))
        self.mode, self.more = mode, more

    def forward(self, x):
        """x float32 [batch, 3, height, width]."""
        scale = ((x.shape[2] + self.more) / 7, (x.shape[3] + self.more) / 5)
        return x + F.interpolate(self.table, scale_factor=scale, mode=self.mode)


class Stretched(torch.nn.Module):
    def forward(self, x, y):
        """x float32 [batch, n], stretched to what y has."""
        scale = y.shape[1] / x.shape[1]
        return F.interpolate(x[None], scale_factor=scale), F.interpolate(x[None], scale_factor=scale, mode="linear")


def image(*sizes: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(2, 3, *sizes)}


def check(runs_like, mode: str, more: float, **options) -> None:
    runs_like(Positions(mode, more), image(9, 12), [image(14, 5), image(3, 2), image(7, 5)], **options)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("more", [0.0, 0.1])
def test_works(runs_like, mode: str, more: float) -> None:
    check(runs_like, mode, more)


def test_lengths(runs_like) -> None:
    others = [{"x": torch.randn(2, n), "y": torch.randn(3, m)} for n, m in ((4, 4), (3, 11), (12, 5))]
    runs_like(Stretched(), {"x": torch.randn(2, 7), "y": torch.randn(2, 6)}, others)


@pytest.mark.xfail(strict=True, reason="the scale is fixed")
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_needed(runs_like, mode: str) -> None:
    check(runs_like, mode, 0.1, without=[ID])
