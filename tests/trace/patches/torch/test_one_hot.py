"""`trace.patches.torch.one_hot`: as many classes as another input has places."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.torch.one_hot"


class Classes(torch.nn.Module):
    def forward(self, y):
        """y float32 [rows, columns]."""
        rows, _ = y.shape
        return F.one_hot(torch.arange(rows), num_classes=rows), F.one_hot(y[0].long() * 0, 4)


def test_works(runs_like):
    runs_like(Classes(), {"y": torch.randn(4, 5)}, [{"y": torch.randn(n, 3)} for n in (2, 3, 7)])


@pytest.mark.xfail(strict=True, reason="the number is the traced one")
def test_needed(runs_like):
    runs_like(Classes(), {"y": torch.randn(4, 5)}, [{"y": torch.randn(3, 2)}], without=[ID])
