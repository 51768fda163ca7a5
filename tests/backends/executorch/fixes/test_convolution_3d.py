"""Convolution over three axes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

FIX = "backends.executorch.fixes.convolution_3d"


class Video(torch.nn.Module):
    def __init__(self, **fields: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv3d(4, 6, **fields)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [batch, 4, frames, height, width]."""
        return self.conv(x)


PATCHES = {"kernel_size": (2, 3, 3), "stride": (2, 3, 3)}
GROUPS = {"kernel_size": 3, "stride": (1, 2, 1), "padding": 1, "dilation": (2, 1, 1), "groups": 2, "bias": False}


@pytest.mark.parametrize("fields", [PATCHES, GROUPS], ids=["patches", "groups"])
def test_works(export: Any, fields: Any) -> None:
    exported = export(Video(**fields), {"x": torch.randn(2, 4, 6, 9, 9)})
    for batch, frames in ((2, 6), (1, 8)):
        assert exported.error(x=torch.randn(batch, 4, frames, 9, 9)) < 1e-5


UP = {"kernel_size": (1, 2, 2), "stride": (1, 2, 2)}
WIDE = {
    "kernel_size": 3,
    "stride": (2, 1, 3),
    "padding": 1,
    "output_padding": (1, 0, 2),
    "groups": 2,
    "dilation": (1, 2, 1),
}


@pytest.mark.parametrize("fields", [UP, WIDE], ids=["up", "wide"])
def test_transposed(export: Any, fields: Any) -> None:
    model = Video(kernel_size=1)
    model.conv = torch.nn.ConvTranspose3d(4, 6, **fields)
    exported = export(model, {"x": torch.randn(2, 4, 3, 5, 4)})
    for batch, frames in ((2, 3), (1, 5)):
        assert exported.error(x=torch.randn(batch, 4, frames, 5, 4)) < 1e-5


def test_padding_by_name(export: Any) -> None:
    exported = export(Video(kernel_size=(3, 1, 3), padding="same"), {"x": torch.randn(2, 4, 3, 5, 4)})
    assert exported.error(x=torch.randn(1, 4, 6, 5, 4)) < 1e-5


@pytest.mark.xfail(strict=True, reason="error 0x12 when it is run")
def test_needed(export: Any) -> None:
    exported = export(Video(**PATCHES), {"x": torch.randn(2, 4, 6, 9, 9)}, disabled_workarounds=(FIX,))
    assert exported.error(x=torch.randn(2, 4, 6, 9, 9)) < 1e-5
