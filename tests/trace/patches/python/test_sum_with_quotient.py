from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

ID = "trace.patches.python.sum_with_quotient"


class Windows(nn.Module):
    """Strided convolutions, each padded to whole windows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Conv1d(1, 4, 4, 2), nn.Conv1d(4, 4, 8, 4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            (kernel,), (stride,), length = layer.kernel_size, layer.stride, x.shape[-1]
            windows = (length - kernel + (kernel - stride)) / stride + 1
            ideal = (math.ceil(windows) - 1) * stride + kernel - (kernel - stride)
            x = layer(F.pad(x, (kernel - stride, ideal - length)))
        return x


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, 1, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, reason="the trace fails at the second layer")
def test_needed(runs_like):
    runs_like(Windows(), inputs(2, 64), [inputs(1, 61)], without=[ID])


def test_works(runs_like):
    runs_like(Windows(), inputs(2, 64), [inputs(1, 61), inputs(3, 35), inputs(1, 160)])


class Capacity(nn.Module):
    """Sums and differences, before and behind, of whole numbers and of others."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        n = x.shape[-1] / 3
        counts = [math.ceil(1 + n), math.ceil(n - 1), math.floor(n + 2.0), math.ceil(n - 0.5), math.ceil(7 - n / 9)]
        return [x[..., :count] for count in counts]


def test_other_sums(runs_like):
    runs_like(Capacity(), inputs(2, 17), [inputs(1, 15), inputs(3, 16), inputs(1, 40)])
