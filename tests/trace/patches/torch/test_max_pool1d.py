from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.torch.max_pool1d"


class Pool(torch.nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 3, stride=2, padding=1), F.max_pool1d(x, (2,), ceil_mode=True)


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, 4, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="aten::max_pool1d freezes the pooled axis")
def test_needed(runs_like):
    runs_like(Pool(), inputs(3, 9), [inputs(3, 20)], without=[ID])


def test_works(runs_like):
    runs_like(Pool(), inputs(3, 9), [inputs(2, 20), inputs(5, 13)])
