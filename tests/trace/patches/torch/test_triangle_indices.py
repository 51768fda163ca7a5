from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.triangle_indices"


class Pairs(torch.nn.Module):
    """Products of all pairs, flat: [batch, n] -> [batch, n (n - 1) / 2]; and other triangles."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[1]
        products = x[:, :, None] * x[:, None]
        first, second = torch.triu_indices(n, n, offset=1)
        below = torch.tril_indices(n, n, dtype=torch.int32)
        wide = torch.triu_indices(n, n + 3, 2)
        pairs = products[:, first, second]
        return pairs, pairs + torch.arange(pairs.shape[1]), below, wide


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, reason="the length is constant")
def test_needed(runs_like):
    runs_like(Pairs(), inputs(2, 7), [inputs(2, 9)], without=[ID])


def test_works(runs_like):
    runs_like(Pairs(), inputs(2, 7), [inputs(1, 9), inputs(3, 2), inputs(1, 30)])
