from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers.models.qwen4_exp.configuration_qwen4_exp import Qwen4ExpTextConfig
from transformers.models.qwen4_exp.modeling_qwen4_exp import Qwen4ExpTextQSAIndexer

ID = "trace.patches.attention.selected_blocks"


class Indexer(torch.nn.Module):
    def __init__(self, budget: int = 4, ratio: int = 2) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = Qwen4ExpTextConfig(
            hidden_size=32,
            head_dim=16,
            indexer_head_dim=16,
            indexer_n_heads=8,
            indexer_kv_heads=1,
            indexer_budget=budget,
            indexer_compress_ratio=ratio,
        )
        self.indexer = Qwen4ExpTextQSAIndexer(config, 0)

    def forward(self, hidden_states: Any, cos: Any, sin: Any, mask: Any) -> torch.Tensor:
        return self.indexer(hidden_states, (cos, sin), mask, cache=None)


def inputs(batch: int, length: int, pads: int = 0) -> dict[str, torch.Tensor]:
    """With causal masks, the first row padded on its left by `pads`."""
    g = torch.Generator().manual_seed(length)
    angle = torch.arange(length).view(1, -1, 1) * torch.tensor([1.0, 0.1]).repeat(2)
    angle = angle.expand(batch, -1, -1)
    mask = torch.ones(batch, 1, length, length, dtype=torch.bool).tril()
    mask[0, ..., :pads] = False
    hidden = torch.randn(batch, length, 32, generator=g)
    return {"hidden_states": hidden, "cos": angle.cos(), "sin": angle.sin(), "mask": mask}


@pytest.mark.xfail(strict=True, reason="the loops over rows and queries ask for numbers that are data")
def test_needed(runs_like):
    runs_like(Indexer(), inputs(2, 9), [inputs(3, 6)], without=[ID])


@pytest.mark.parametrize(("budget", "ratio"), [(4, 2), (6, 3), (2, 2)])
def test_works(runs_like, budget, ratio):
    """Lengths below a block, at whole blocks and between; rows with padding, and queries that see no key."""
    others = [inputs(3, 6), inputs(1, 2), inputs(2, 17, pads=3), inputs(4, 12, pads=5)]
    runs_like(Indexer(budget, ratio), inputs(2, 9, pads=1), others)


def test_windows(runs_like):
    """Masks in which a query does not see what the one before it saw; as numbers to be added."""
    windowed = inputs(2, 14)
    windowed["mask"] = windowed["mask"].triu(-4)
    traced = inputs(2, 9, pads=1)
    for one in (windowed, traced):
        one["mask"] = torch.where(one["mask"], 0.0, -1e9)
    runs_like(Indexer(), traced, [windowed])
