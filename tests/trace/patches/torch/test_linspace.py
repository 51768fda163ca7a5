from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.linspace"


class Grid(torch.nn.Module):
    def forward(self, x):
        height, width = x.shape
        return x + torch.linspace(0.5, height - 0.5, height, dtype=x.dtype)[:, None], torch.linspace(0, 1, width)


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.zeros(height, width)}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="torch.linspace freezes its number of steps")
def test_needed(runs_like):
    runs_like(Grid(), inputs(5, 7), [inputs(6, 9)], without=[ID])


def test_works(runs_like):
    runs_like(Grid(), inputs(5, 7), [inputs(6, 9), inputs(2, 1), inputs(33, 20)], tolerance=1e-6)
