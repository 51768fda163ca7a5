"""What computes nothing is dropped, but not a copy that is written into, or whose source is."""

from __future__ import annotations

from typing import Any

import torch


class Copies(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        """x and y float32 [n, 4]."""
        changed = x.clone()
        changed.mul_(2.0)
        part = (y * 1.0)[:, 1:]
        part.add_(3.0)
        doubled = x + x
        before = doubled.clone()
        doubled.view(-1).copy_(torch.ones_like(doubled).view(-1))
        return {"source": x + changed, "part": y[:, 1:] + part, "before": before + doubled, "plain": x.clone() + 1}


def case(n: int) -> dict[str, torch.Tensor]:
    return {"x": torch.arange(4.0 * n).reshape(n, 4), "y": torch.arange(4.0 * n).reshape(n, 4).flip(0)}


def test_a_copy_that_is_written_into_stays(export: Any) -> None:
    exported = export(Copies(), case(3))
    for n in (3, 5):
        assert exported.error(**case(n)) == 0
