"""Remainders of numbers below zero."""

from __future__ import annotations

from typing import Any

import pytest
import torch

FIX = "backends.executorch.fixes.remainder_of_integers"


class Wrapped(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """x and y int64 [n]."""
        return x % 3, x % -3, x % y, (x / 2) % 3, x + (4 - x.shape[0]) % 3


def case(n: int) -> dict[str, torch.Tensor]:
    return {"x": torch.arange(n) - n // 2, "y": torch.arange(n) % 4 + 1}


def test_works(export: Any) -> None:
    exported = export(Wrapped(), case(5))
    for n in (5, 12):
        assert exported.error(**case(n)) == 0


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the remainder has the sign of the dividend")
def test_needed(export: Any) -> None:
    exported = export(Wrapped(), case(5), disabled_workarounds=(FIX,))
    assert exported.error(**case(5)) == 0
