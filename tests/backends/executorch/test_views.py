"""Views between fixed sizes and sizes that are not."""

from __future__ import annotations

from typing import Any

import torch


class Positions(torch.nn.Module):
    """A table of 16 positions, laid out in as many rows as the input has: no other number of values fits."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [rows, 16 / rows, 8]."""
        rows = x.shape[0]
        doubled = (self.table * x.sum().sign()).view(rows, 16 // rows, 8)
        return doubled.permute(1, 0, 2) + self.table.view(rows, 16 // rows, 8).permute(1, 0, 2)


def test_a_fixed_tensor_is_viewed_with_open_sizes(export: Any) -> None:
    exported = export(Positions(), {"x": torch.randn(4, 4, 8)})
    for rows in (4, 2, 8):
        assert exported.error(x=torch.randn(rows, 16 // rows, 8)) < 1e-6
