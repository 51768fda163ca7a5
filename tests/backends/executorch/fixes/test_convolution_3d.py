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


@pytest.mark.xfail(strict=True, reason="error 0x12 when it is run")
def test_needed(export: Any) -> None:
    exported = export(Video(**PATCHES), {"x": torch.randn(2, 4, 6, 9, 9)}, disabled_workarounds=(FIX,))
    assert exported.error(x=torch.randn(2, 4, 6, 9, 9)) < 1e-5
