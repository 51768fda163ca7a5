"""Tensors that are not row-major next to an XNNPACK part."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

FIX = "backends.executorch.fixes.channels_last"


class Positions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(1, 3, 3, 5))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """image [b, 1, h, w]: DINOv2's position table, resized to the image's grid."""
        size = image.shape[-2:]
        table = F.interpolate(self.table.permute(0, 3, 1, 2), size=size, mode="bicubic", align_corners=False)
        return table.permute(0, 2, 3, 1) * 2.0


def test_works(export: Any) -> None:
    exported = export(Positions(), {"image": torch.randn(2, 1, 7, 9)})
    for size in ((7, 9), (3, 3), (12, 20)):
        assert exported.error(image=torch.randn(2, 1, *size)) < 1e-4


@pytest.mark.xfail(strict=True, reason="the resized table is read as row-major")
def test_needed(export: Any) -> None:
    exported = export(Positions(), {"image": torch.randn(2, 1, 7, 9)}, disabled_workarounds=(FIX,))
    assert exported.notes["undelegated_ops"].get("dim_order_ops._clone_dim_order.default", 0) == 0
    assert exported.error(image=torch.randn(2, 1, 7, 9)) < 1e-4
