from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.take_along_dim"


class Sorted(torch.nn.Module):
    def forward(self, scores, boxes):
        """scores float [batch, n], boxes float [batch, n, 4]: both by score, one box for all batches, and the best score."""
        order = scores.argsort(dim=1, descending=True)
        same = torch.take_along_dim(boxes, order[..., None].expand(-1, -1, 4), dim=1)
        columns = boxes.take_along_dim(order.unsqueeze(-1), 1)
        shared = torch.take_along_dim(torch.arange(4.0).reshape(1, 1, 4), order[..., None] % 4, dim=-1)
        return same, columns, shared, torch.take_along_dim(scores, order[0])


def inputs(batch: int, n: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(n)
    return {"scores": torch.randn(batch, n, generator=g), "boxes": torch.randn(batch, n, 4, generator=g)}


@pytest.mark.xfail(strict=True, reason="the sizes of the trace are baked in")
def test_needed(runs_like):
    runs_like(Sorted(), inputs(3, 5), [inputs(2, 7)], without=[ID])


def test_works(runs_like):
    runs_like(Sorted(), inputs(3, 5), [inputs(2, 7), inputs(1, 9)])
