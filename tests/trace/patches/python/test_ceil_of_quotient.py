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


class Capacity(torch.nn.Module):
    """The tokens that an expert has room for, and a number of them that is no fraction."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        length = x.shape[1]
        return x[:, : math.ceil(1.25 * length / 4)], x[:, : math.ceil(length**0.5)]


def test_quotients_of_products_and_what_is_no_fraction(runs_like):
    saved(runs_like(Capacity(), inputs(2, 17), [inputs(3, 15), inputs(2, 16), inputs(2, 33), inputs(1, 99)]))
