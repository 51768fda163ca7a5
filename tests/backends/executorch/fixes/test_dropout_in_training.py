"""Dropout that a model leaves on."""

from __future__ import annotations

from typing import Any

import pytest
import torch

FIX = "backends.executorch.fixes.dropout_in_training"


class Forgotten(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x float32 [n, 8]; the elements that were kept."""
        dropped = torch.nn.functional.dropout(x, 0.25)
        return torch.where(dropped == 0, 1 / 0.75, dropped)


def case(n: int) -> dict[str, torch.Tensor]:
    return {"x": torch.ones(n, 8)}


def test_works(export: Any) -> None:
    exported = export(Forgotten(), case(5))
    for n in (5, 12):
        assert exported.error(**case(n)) < 1e-6


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="what is kept is not divided by its chance")
def test_needed(export: Any) -> None:
    exported = export(Forgotten(), case(5), disabled_workarounds=(FIX,))
    assert exported.error(**case(5)) < 1e-6
