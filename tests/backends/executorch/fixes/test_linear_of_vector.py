"""The mean of a distribution over bins: a linear layer with a vector."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transformers_exporters import ArtifactError

FIX = "backends.executorch.fixes.linear_of_vector"


class Mean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x float32 [batch, n, 8] -> [batch, n]."""
        bins = x.new_tensor([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
        return torch.nn.functional.linear(x.softmax(-1), bins * x.amax())


def case(batch: int, n: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, n, 8, generator=torch.Generator().manual_seed(n))}


def test_works(export: Any) -> None:
    exported = export(Mean(), case(2, 5))
    for batch, n in ((2, 5), (3, 9), (1, 1)):
        assert exported.error(**case(batch, n)) < 1e-4


@pytest.mark.xfail(strict=True, raises=ArtifactError, reason="the kernel wants a result of three axes")
def test_needed(export: Any) -> None:
    exported = export(Mean(), case(2, 5), disabled_workarounds=(FIX,))
    assert exported.error(**case(2, 5)) < 1e-4
