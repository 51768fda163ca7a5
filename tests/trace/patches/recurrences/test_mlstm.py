from __future__ import annotations

import pytest
import torch
from transformers import xLSTMConfig
from transformers.models.xlstm.modeling_xlstm import xLSTMBackend

ID = "trace.patches.recurrences.mlstm"


class Memory(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backend = xLSTMBackend(xLSTMConfig(chunk_size=8, mode="inference"))

    def forward(self, query, key, value, igate, fgate, c_initial=None, n_initial=None, m_initial=None):
        return self.backend(query, key, value, igate, fgate, c_initial, n_initial, m_initial)


def inputs(batch: int, length: int, cached: bool = False) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)

    def random(*shape, scale=1.0):
        return torch.randn(batch, 2, *shape, generator=g) * scale

    state = {"c_initial": random(4, 6), "n_initial": random(4), "m_initial": random(1)} if cached else {}
    gates = {"igate": random(length, scale=5.0), "fgate": random(length, scale=5.0)}
    return {"query": random(length, 4), "key": random(length, 4), "value": random(length, 6), **gates, **state}


@pytest.mark.xfail(
    strict=True, raises=(AssertionError, RuntimeError), reason="the loops over chunks and steps freeze the length"
)
def test_needed(runs_like):
    runs_like(Memory(), inputs(2, 19), [inputs(2, 30)], without=[ID])


@pytest.mark.parametrize("cached", [False, True])
def test_works(runs_like, cached):
    runs_like(Memory(), inputs(2, 19, cached), [inputs(3, n, cached) for n in (5, 32, 33, 80)])
