from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.pieces_joined"


class Merged(torch.nn.Module):
    def forward(self, values, counts):
        return torch.cat(values.split(counts.tolist()), dim=0) * 2, torch.cat([values, values], -1)


def inputs(*counts: int) -> dict[str, torch.Tensor]:
    return {"values": torch.randn(sum(counts), 3), "counts": torch.tensor(counts)}


@pytest.mark.xfail(strict=True, reason="the number of pieces is baked in")
def test_needed(runs_like):
    runs_like(Merged(), inputs(3, 1, 2), [inputs(4, 2, 1), inputs(2, 5)], without=[ID])


def test_works(runs_like):
    runs_like(Merged(), inputs(3, 1, 2), [inputs(4, 2, 1), inputs(2, 5)])


class Side(torch.nn.Module):
    """Pieces side by side: only cut pieces can be put there."""

    def forward(self, values, counts):
        return torch.cat(values.split(counts.tolist()), dim=1)


def test_side_by_side(runs_like):
    runs_like(Side(), inputs(2, 2), [inputs(3, 3)])
