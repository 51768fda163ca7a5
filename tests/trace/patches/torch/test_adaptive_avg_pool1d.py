"""`trace.patches.torch.adaptive_avg_pool1d`: as many parts as another input has places."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.torch.adaptive_avg_pool1d"


class Parts(torch.nn.Module):
    def forward(self, x, y):
        """x float32 [batch, 2, height, width], y float32 [rows, columns]."""
        rows, columns = y.shape
        pooled = F.adaptive_avg_pool2d(x, (rows, columns)), F.adaptive_avg_pool2d(x, output_size=rows)
        return *pooled, F.adaptive_avg_pool1d(x[0], columns)


class Plain(torch.nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (None, 1)), F.adaptive_avg_pool1d(x[0], 3)


def sizes(*four: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(2, 2, *four[:2]), "y": torch.randn(*four[2:])}


def test_works(runs_like):
    runs_like(Parts(), sizes(9, 12, 4, 5), [sizes(6, 4, 3, 2), sizes(5, 5, 7, 5), sizes(20, 3, 6, 11)])
    runs_like(Plain(), {"x": torch.randn(2, 2, 6, 5)}, [{"x": torch.randn(3, 2, 4, 9)}])


@pytest.mark.xfail(strict=True, reason="the number is the traced one")
def test_needed(runs_like):
    runs_like(Parts(), sizes(9, 12, 4, 5), [sizes(6, 4, 3, 2)], without=[ID])
