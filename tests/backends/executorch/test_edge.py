"""From aten to the edge dialect."""

from __future__ import annotations

from typing import Any

import torch


class Pieces(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x float32 [b, t, 4]: joined with nothing, nothing with nothing, and what comes of that."""
        nothing = x[:, :0]
        none = torch.cat([nothing, nothing * 2], dim=-1)
        return torch.cat([nothing, x, torch.zeros(0)], dim=1), none, torch.cat([none, torch.cat([x, x], -1)], dim=1)


def test_joins_of_empty_pieces(export: Any) -> None:
    exported = export(Pieces(), {"x": torch.randn(2, 5, 4)})
    for shape in ((2, 5), (3, 9)):
        x = torch.randn(*shape, 4)
        for got, expected in zip(torch.utils._pytree.tree_leaves(exported(x=x)), Pieces()(x), strict=True):
            torch.testing.assert_close(got, expected)
