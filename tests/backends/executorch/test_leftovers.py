"""Batched products that XNNPACK is not given: those of sizes that are data."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F


class AttentionOverChosen(torch.nn.Module):
    """Attention among the rows of a packed sequence that a mask chooses, as vision and audio towers do."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(8, 24)

    def forward(self, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """x float32 [batch, rows, 8], chosen bool [batch, rows] -> [count, 8]."""
        rows = x.reshape(-1, 8)[chosen.flatten().nonzero().squeeze(-1)]
        heads = self.project(rows).view(-1, 3, 2, 4).permute(1, 2, 0, 3).unsqueeze(1)
        query, key, value = heads
        mixed = F.scaled_dot_product_attention(query, key, value)
        scores = torch.matmul(mixed, mixed[0].transpose(-1, -2))  # [1, 2, count, count], one factor has an axis less
        return torch.matmul(scores, mixed).transpose(1, 2).reshape(-1, 8)


def inputs(batch: int, rows: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(rows)
    return {"x": torch.randn(batch, rows, 8), "chosen": torch.rand(batch, rows) > 0.4}


def test_sizes_that_are_data_run_outside_of_xnnpack(export: Any) -> None:
    exported = export(AttentionOverChosen(), inputs(2, 6))
    assert exported.notes["undelegated_ops"].get("bmm.default") == 4
    for batch, rows in ((2, 6), (3, 11), (1, 30)):
        assert exported.error(**inputs(batch, rows)) < 1e-4
