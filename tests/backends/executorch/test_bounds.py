"""Bounds that nobody stated: large enough to be useful, small enough to be planned for."""

from __future__ import annotations

from typing import Any

import torch

from transformers_exporters.backends.executorch.bounds import MOST_MEMORY
from transformers_exporters.backends.executorch.planned_memory import Memory


class Vocabulary(torch.nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = words
        self.head = torch.nn.Linear(4, 1, bias=False)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """float32 [batch, sequence, 4] -> [batch, sequence, words]."""
        return self.head(hidden_states).expand(-1, -1, self.words) + 1


def bounds(exported: Any) -> dict[str, int]:
    return {name: axis.maximum for name, axis in exported.loaded["model"].spec.axes.items()}


def test_a_small_graph_keeps_the_defaults(export: Any) -> None:
    found = bounds(export(Vocabulary(10), {"hidden_states": torch.randn(1, 5, 4)}))
    assert found["batch"] == 16
    assert found["sequence"] == 1024


def test_a_large_vocabulary_leaves_four_rows(export: Any) -> None:
    words = 100_000
    found = bounds(export(Vocabulary(words), {"hidden_states": torch.randn(1, 5, 4)}))
    assert found["batch"] >= 4
    assert found["sequence"] >= 128
    assert found["batch"] * found["sequence"] * words * 4 <= MOST_MEMORY


def test_memory_counts_what_is_alive_at_once() -> None:
    class Chain(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(10):
                x = x * 2
            return x

    length = torch.export.Dim("length", max=1000)
    program = torch.export.export(Chain(), (torch.ones(4, 8),), dynamic_shapes=({0: length},))
    (symbol,) = program.range_constraints
    memory = Memory(program)
    assert memory.needed({symbol: 100}) == 2 * 100 * 8 * 4
    assert memory.needed({symbol: 1000}) == 2 * 1000 * 8 * 4
