from __future__ import annotations

import pytest
import torch
from transformers.models.mamba2 import modeling_mamba2

ID = "trace.patches.recurrences.mamba2_chunks"


class Scan(torch.nn.Module):
    def forward(self, x, dt, b, c, state):
        return modeling_mamba2.mamba2_chunk_scan(
            x,
            dt,
            -torch.arange(1.0, 5.0),
            b,
            c,
            chunk_size=8,
            D=torch.ones(4),
            dt_bias=torch.full((4,), 0.5),
            initial_states=state,
            dt_softplus=True,
            dt_limit=(0.01, 5.0),
            return_final_states=True,
        )


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    return {
        "x": torch.randn(batch, length, 4, 6, generator=g),
        "dt": torch.randn(batch, length, 4, generator=g),
        "b": torch.randn(batch, length, 2, 3, generator=g),
        "c": torch.randn(batch, length, 2, 3, generator=g),
        "state": torch.randn(batch, 4, 6, 3, generator=g),
    }


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="a single chunk is a constant axis")
def test_needed(runs_like):
    runs_like(Scan(), inputs(2, 7), [inputs(2, 20)], without=[ID])


def test_works(runs_like):
    runs_like(Scan(), inputs(2, 7), [inputs(3, n) for n in (3, 8, 9, 16, 50)])
