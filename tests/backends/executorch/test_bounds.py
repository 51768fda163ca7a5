"""Bounds that nobody stated: large enough to be useful, small enough to be planned for."""

from __future__ import annotations

import math
from typing import Any

import torch

from transformers_exporters.backends.executorch.bounds import MOST_MEMORY, MOST_USABLE
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
    assert found["sequence"] >= 100
    assert found["batch"] * found["sequence"] * words * 4 <= MOST_MEMORY


def test_what_nobody_could_load_keeps_the_traced_sizes(export: Any) -> None:
    """Three times four axes is 81 times the memory: Mllama's pictures of tiles of rows took 28 GB."""

    class Wide(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.unsqueeze(-1).expand(-1, -1, -1, -1, 2000) + 1

    exported = export(Wide(), {"x": torch.randn(9, 10, 11, 12)})
    found = exported.loaded["model"].spec.inputs[0].shape
    sizes = [bounds(exported).get(name, name) for name in found]
    assert all(size >= traced for size, traced in zip(sizes, (9, 10, 11, 12), strict=True))
    assert 4 * 2000 * math.prod(sizes) <= MOST_USABLE


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


def test_there_is_room_above_the_traced_sizes_whatever_memory_that_takes(export: Any) -> None:
    exported = export(Vocabulary(1_200_000), {"hidden_states": torch.randn(2, 8, 4)})
    found = bounds(exported)
    assert found["batch"] >= 4
    assert found["sequence"] >= 16
    assert exported.error(hidden_states=torch.randn(3, 9, 4)) < 1e-6


class RealImages(torch.nn.Module):
    """Drops images that are all zeros, as Idefics3 does, and attends between the pixels of each."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """float32 [batch, images, 4, height, width] -> [images that are not zeros, 1, height * width, 4]."""
        flat = pixel_values.flatten(0, 1)
        pixels = flat[(flat != 0).flatten(1).any(1)].flatten(2).transpose(1, 2).unsqueeze(1)
        return torch.nn.functional.scaled_dot_product_attention(pixels, pixels, pixels)


def test_what_a_mask_picks_is_as_wide_as_it_was(export: Any) -> None:
    """Only the number of rows is data: height and width are not counts."""
    exported = export(RealImages(), {"pixel_values": torch.randn(2, 2, 4, 6, 5)})
    found = bounds(exported)
    assert found["batch"] >= 4
    assert found["height"] >= 16
    assert exported.error(pixel_values=torch.randn(3, 3, 4, 7, 16)) < 1e-5


def test_scores_between_sizes_that_are_data_are_planned_for(export: Any) -> None:
    """XNNPACK does not take such an attention, so its scores are in the arena."""
    exported = export(RealImages(), {"pixel_values": torch.randn(2, 2, 4, 6, 5)})
    assert exported.notes["arena_bytes"] < 2 * MOST_MEMORY
