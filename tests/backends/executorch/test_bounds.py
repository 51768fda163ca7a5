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


def test_symbols_of_one_axis_have_one_bound(export: Any) -> None:
    """torch knows nothing of two inputs that share a batch until they meet; the border has one axis."""

    class Two(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            wide = input_ids[..., None].expand(-1, -1, 60_000).float() + 1
            return wide.sum(-1), attention_mask * 2

    ids = torch.ones(1, 5, dtype=torch.int64)
    exported = export(Two(), {"input_ids": ids, "attention_mask": ids})
    batch = bounds(exported)["batch"]
    assert batch < 16
    full = torch.ones(batch, 3, dtype=torch.int64)
    assert exported.error(input_ids=full, attention_mask=full) == 0


def test_what_is_computed_from_weights_alone_is_no_reason_to_lower_a_bound() -> None:
    """Float weights that a quantized graph computes from its integers first."""

    class Rounded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.codes = torch.nn.Buffer(torch.ones(1000, 4, dtype=torch.int8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = self.codes.to(torch.float32) * 0.1
            return x @ weight[:4]

    length = torch.export.Dim("length", max=1000)
    program = torch.export.export(Rounded(), (torch.ones(5, 4),), dynamic_shapes=({0: length},))
    (symbol,) = program.range_constraints
    assert Memory(program).needed({symbol: 10}) == 2 * 10 * 4 * 4
