from __future__ import annotations

import pytest
import torch
from transformers import MiniMaxConfig
from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention

ID = "trace.patches.recurrences.lightning_attention"


class Cache:
    """The part of the model's cache that the layer uses."""

    def __init__(self, state):
        self.state = state

    def get_linear_cache(self, layer):
        return self.state

    def set_linear_cache(self, layer, state):
        self.state = state


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        config = MiniMaxConfig(hidden_size=16, num_attention_heads=2, head_dim=8, num_hidden_layers=2, block_size=8)
        self.layer = MiniMaxLightningAttention(config, 0)

    def forward(self, x, mask, state=None):
        return self.layer(x, None, mask, cache=None if state is None else Cache(state))


def inputs(batch: int, length: int, cached: bool = False) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    mask = torch.ones(batch, length)
    mask[0, 0] = 0
    state = {"state": torch.randn(batch, 2, 8, 8, generator=g)} if cached else {}
    return {"x": torch.randn(batch, length, 16, generator=g), "mask": mask, **state}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the loop over blocks freezes the length")
def test_needed(runs_like):
    runs_like(Layer(), inputs(2, 19), [inputs(2, 30)], without=[ID])


@pytest.mark.parametrize("cached", [False, True])
def test_works(runs_like, cached):
    runs_like(Layer(), inputs(2, 19, cached), [inputs(3, n, cached) for n in (5, 32, 33, 80)])
