from __future__ import annotations

import pytest
import torch
from torch import nn

from transformers_exporters.trace.idioms.hits import mask_of_loop

ID = "trace.patches.python.loop_over_hits"


class Mixture(nn.Module):
    """Four experts, two a token, as Mixtral's first code and its copies have them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def choices(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, chosen = torch.topk(self.gate(hidden).softmax(-1), 2, dim=-1)
        return weights, nn.functional.one_hot(chosen, 4).permute(2, 1, 0)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        weights, mask = self.choices(hidden)
        out = torch.zeros_like(hidden)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for expert in hit:
            layer = self.experts[expert]
            slot, token = torch.where(mask[expert].squeeze(0))
            out.index_add_(0, token, layer(hidden[token]) * weights[token, slot, None])
        return out


class Numbered(Mixture):
    """Takes the index out of its row, and skips what has no token."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        weights, mask = self.choices(hidden)
        out = torch.zeros_like(hidden)
        hit = (mask.sum((-1, -2)) > 0).nonzero()
        for expert in hit:
            slot, token = torch.where(mask[expert].squeeze(0))
            if token.numel() == 0:
                continue
            number = expert.item()
            out[token] += self.experts[number](hidden[token]) * weights[token, slot, None]
        return out


class Counted(Mixture):
    """What a round does is not about its tokens alone."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        _, mask = self.choices(hidden)
        hit = (mask.sum((-1, -2)) > 0).nonzero()
        for expert in hit:
            token = torch.where(mask[expert].squeeze(0))[1]
            hidden = hidden + 1
        return hidden + token.sum()


def inputs(tokens: int) -> dict[str, torch.Tensor]:
    return {"hidden": torch.randn(tokens, 8, generator=torch.Generator().manual_seed(tokens)) * 5}


@pytest.mark.parametrize("module", [Mixture, Numbered])
@pytest.mark.xfail(strict=True, reason="which experts are hit is data")
def test_needed(runs_like, module):
    runs_like(module(), inputs(7), [], without=[ID])


@pytest.mark.parametrize("module", [Mixture, Numbered])
def test_works(runs_like, module):
    """With experts that no token of the sample chose, and with a single token."""
    runs_like(module(), inputs(2), [inputs(1), inputs(5), inputs(40)])


def test_other_loops_are_left_alone():
    masks = [name for line in range(1, 100) if (name := mask_of_loop(__file__, line))]
    assert masks == ["mask", "mask"]
