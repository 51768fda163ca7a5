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


class RelativePositions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = torch.nn.Parameter(torch.randn(1, 9, 4))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """hidden_states float32 [batch, sequence, 4]: the positions -4 to 4, as many of them as there can be, as VITS takes them."""
        length = hidden_states.shape[1]
        around = max(length - 5, 0)
        padded = F.pad(self.embeddings, [0, 0, around, around, 0, 0]) if around > 0 else self.embeddings
        first = max(5 - length, 0)
        return hidden_states @ padded[:, first : first + 2 * length - 1].transpose(1, 2)


def test_fewer_positions_than_were_traced(export: Any) -> None:
    exported = export(RelativePositions(), {"hidden_states": torch.randn(2, 9, 4)})
    for batch, length in ((2, 9), (3, 20), (2, 5), (1, 3), (2, 1)):
        assert exported.error(hidden_states=torch.randn(batch, length, 4)) < 1e-5


@pytest.mark.xfail(strict=True, reason="the kernel refuses a negative amount")
def test_needed(export: Any) -> None:
    exported = export(LastSteps(), {"x": torch.randn(2, 7, 5)}, disabled_workarounds=(FIX,))
    assert exported.error(x=torch.randn(2, 7, 5)) == 0
