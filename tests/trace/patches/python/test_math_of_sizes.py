from __future__ import annotations

import io
import math

import pytest
import torch

ID = "trace.patches.python.math_of_sizes"


class Scaled(torch.nn.Module):
    """Scaled by functions of a length, and cut by one."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        length = x.shape[1]
        assert math.log(8, 2) == 3 and math.pi > 3
        least = max(1.0, math.log(length + 1) / math.log(16))
        roots = x / math.sqrt(length), x[:, : math.isqrt(length)], x * math.pow(length, 0.25)
        return *roots, x * math.log(length + 1, 2), x * math.exp(-length / 9), x * least


def inputs(rows: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(rows, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, reason="the traced size is baked in")
def test_needed(runs_like):
    runs_like(Scaled(), inputs(2, 12), [inputs(3, 10)], without=[ID])


def test_works(runs_like):
    program = runs_like(Scaled(), inputs(2, 12), [inputs(3, 10), inputs(1, 1), inputs(1, 40)])
    torch.export.save(program, io.BytesIO())
    assert vars(math)["sqrt"] is math.sqrt and math.sqrt(4) == 2
