"""`trace.patches.torch.pool_over_all`: the last pooling of a network."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.torch.pool_over_all"


class Pooled(torch.nn.Module):
    def forward(self, x):
        """x float32 [batch, channels, height, width]."""
        rows = x.flatten(2)
        whole = F.avg_pool2d(x, x.shape[2:]), F.max_pool2d(x, kernel_size=(x.shape[2], x.shape[3]))
        return *whole, F.avg_pool1d(rows, rows.shape[-1]), F.max_pool1d(rows, rows.shape[-1]), F.max_pool2d(x, 2)


def image(*sizes: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(2, 3, *sizes)}


def test_works(runs_like):
    runs_like(Pooled(), image(8, 6), [image(2, 3), image(11, 5)])


@pytest.mark.xfail(strict=True, reason="the kernel is the traced one")
def test_needed(runs_like):
    runs_like(Pooled(), image(8, 6), [image(11, 5)], without=[ID])


def test_what_is_left_to_torch_keeps_all_of_its_arguments(runs_like):
    """A kernel of half the input fixes the axis; the rest of the call counts still."""

    class Half(torch.nn.Module):
        def forward(self, x):
            return F.max_pool2d(x, (x.shape[2] // 2 + 1, 2), 2, 0, 1, True)

    runs_like(Half(), image(7, 5), [image(7, 9)])
