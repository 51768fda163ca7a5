"""Padding by a negative amount."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

FIX = "backends.executorch.fixes.padding_that_may_crop"


class LastSteps(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x float32 [batch, sequence, 5]: the last 4 steps as Mamba keeps them, the first 4, and a fixed crop."""
        length = x.shape[1]
        return F.pad(x, (0, 0, 4 - length, 0)), F.pad(x, (0, 0, 0, 4 - length), value=2.0), F.pad(x, (-1, 1))


def test_works(export: Any) -> None:
    exported = export(LastSteps(), {"x": torch.randn(2, 7, 5)})
    for batch, length in ((2, 7), (3, 9), (1, 30)):
        assert exported.error(x=torch.randn(batch, length, 5)) == 0


@pytest.mark.xfail(strict=True, reason="the kernel refuses a negative amount")
def test_needed(export: Any) -> None:
    exported = export(LastSteps(), {"x": torch.randn(2, 7, 5)}, disabled_workarounds=(FIX,))
    assert exported.error(x=torch.randn(2, 7, 5)) == 0
