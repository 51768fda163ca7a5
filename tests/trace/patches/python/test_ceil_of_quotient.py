from __future__ import annotations

import io
import math

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.python.ceil_of_quotient"


class Blocks(torch.nn.Module):
    """Cuts a sequence into blocks of 5, the last one padded: [batch, blocks, 5]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        blocks = math.ceil(x.shape[1] / 5)
        return F.pad(x, (0, blocks * 5 - x.shape[1])).view(x.shape[0], blocks, 5)


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, length, generator=torch.Generator().manual_seed(length))}


def saved(program: torch.export.ExportedProgram) -> None:
    torch.export.save(program, io.BytesIO())


@pytest.mark.xfail(strict=True, reason="the program cannot be saved")
def test_needed(runs_like):
    saved(runs_like(Blocks(), inputs(2, 17), [], without=[ID]))


def test_works(runs_like):
    saved(runs_like(Blocks(), inputs(2, 17), [inputs(3, 15), inputs(2, 16), inputs(2, 33)]))
