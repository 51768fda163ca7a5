"""Numbers that a graph takes out of its inputs: known for the sample, planned for with room above."""

from __future__ import annotations

from typing import Any

import torch

from transformers_exporters.backends.executorch.sample_counts import sample_counts


class Packed(torch.nn.Module):
    """Repeats the row of each picture as often as it has patches, and lets them attend: Pixtral's encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(8, 8)

    def forward(self, hidden_states: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        """hidden_states float32 [batch, 8], sizes int64 [batch, 2] -> [batch, heads, patches, 4] over all patches."""
        counts = sizes.prod(-1)
        number = counts.sum().item()
        torch._check(number > 1)
        places = torch.arange(number)
        owner = (places[:, None] >= counts.cumsum(0)[None]).sum(-1)
        rows = self.project(hidden_states).index_select(0, owner) + places[:, None] / 10_000
        heads = rows.view(1, -1, 2, 4).transpose(1, 2)
        return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)


def inputs(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {"hidden_states": torch.randn(len(sizes), 8), "sizes": torch.tensor(sizes)}


def test_the_sum_of_an_input_is_known() -> None:
    given = inputs((2, 3), (4, 5), (3, 3))
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(Packed(), (), given, dynamic_shapes={"hidden_states": {0: rows}, "sizes": {0: rows}})
    assert list(sample_counts(program, given).values()) == [6 + 20 + 9]


def test_what_depends_on_a_weight_is_not_known() -> None:
    class Predicted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.length = torch.nn.Parameter(torch.tensor(5.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros((x.sum() * self.length).to(torch.int64).item())

    x = torch.ones(3)
    assert sample_counts(torch.export.export(Predicted(), (x,)), {"x": x}) == {}


def test_more_patches_than_the_default_bound(export: Any) -> None:
    exported = export(Packed(), inputs((30, 30), (30, 30), (20, 30)))
    for sizes in (((30, 30), (30, 30), (20, 30)), ((30, 30),) * 6, ((1, 2),)):
        assert exported.error(**inputs(*sizes)) < 1e-5


def test_a_count_that_is_at_least_one_is_computed_by_xnnpack(export: Any) -> None:
    exported = export(Packed(), inputs((2, 3), (4, 5), (3, 3)))
    assert not {"bmm.default", "_softmax.default"} & set(exported.notes["undelegated_ops"])
