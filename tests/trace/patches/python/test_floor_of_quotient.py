from __future__ import annotations

import io
import math

import pytest
import torch

ID = "trace.patches.python.floor_of_quotient"


class Kept(torch.nn.Module):
    """The tokens that have room: by a quotient, by a quotient of a product, and by a number that is no fraction."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        length = x.shape[1]
        return x[:, : math.floor(length / 3)], x[:, : math.floor(length * 1.25 / 4)], x[:, : math.floor(length**0.5)]


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, length, generator=torch.Generator().manual_seed(length))}


def saved(program: torch.export.ExportedProgram) -> None:
    torch.export.save(program, io.BytesIO())


@pytest.mark.xfail(strict=True, reason="the program cannot be saved")
def test_needed(runs_like):
    saved(runs_like(Kept(), inputs(2, 17), [], without=[ID]))


def test_works(runs_like):
    saved(runs_like(Kept(), inputs(2, 17), [inputs(3, 15), inputs(2, 16), inputs(2, 33), inputs(1, 99)]))
