"""Fourier transforms without complex numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

FIX = "backends.executorch.fixes.fourier"


class Mixing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x float32 [batch, sequence, 12]: FNet's mixing, and a transform there and back."""
        there = torch.fft.fft(x, dim=1, norm="ortho")
        return torch.fft.fftn(x, dim=(1, 2)).real, torch.fft.ifft(there, dim=1, norm="ortho").real


def test_works(export: Any) -> None:
    exported = export(Mixing(), {"x": torch.randn(2, 7, 12)})
    for batch, length in ((2, 7), (3, 1), (1, 40)):
        assert exported.error(x=torch.randn(batch, length, 12)) < 1e-4


@pytest.mark.xfail(strict=True, reason="ExecuTorch has no complex numbers")
def test_needed(export: Any) -> None:
    export(Mixing(), {"x": torch.randn(2, 7, 12)}, disabled_workarounds=(FIX,))
