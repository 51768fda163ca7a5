"""Views between fixed sizes and sizes that are not."""

from __future__ import annotations

from typing import Any

import pytest
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


class Grouped(torch.nn.Module):
    """Attention of three query heads to each key head."""

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """query [batch, 2, 3, length, 4], key [batch, 2, keys, 4]."""
        return torch.softmax(query @ (key * 2).unsqueeze(2).transpose(-1, -2), -1)


def kernels(exported: Any) -> set[str]:
    plan = exported.fresh[exported.name].program.executorch_program.execution_plan[0]
    return {operator.name for operator in plan.operators}


def test_a_new_axis_copies_nothing(export: Any) -> None:
    exported = export(Grouped(), {"query": torch.randn(2, 2, 3, 5, 4), "key": torch.randn(2, 2, 7, 4)})
    assert "aten::unsqueeze_copy" not in kernels(exported)
    for batch, length, keys in ((2, 5, 7), (1, 1, 9), (3, 4, 2)):
        assert exported.error(query=torch.randn(batch, 2, 3, length, 4), key=torch.randn(batch, 2, keys, 4)) < 1e-6


class Before(torch.nn.Module):
    """Reads what a cache held before it was written into."""

    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x [1, 2, 3], cache [1, 8, 3]."""
        before = cache.unsqueeze(1) * 2
        cache.index_copy_(1, torch.arange(2), x)
        return before + cache.unsqueeze(1), cache.sum(1)


@pytest.mark.parametrize("planned", [True, False])
def test_a_view_does_not_see_what_is_written_later(export: Any, planned: bool) -> None:
    sample = {"x": torch.ones(1, 2, 3), "cache": torch.zeros(1, 8, 3)}
    exported = export(Before(), sample, dynamic=False, alloc_graph_input=planned)
    for _ in range(2):
        assert exported.error(x=torch.randn(1, 2, 3), cache=torch.randn(1, 8, 3)) < 1e-6
