from __future__ import annotations

import pytest
import torch
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

ID = "trace.patches.recurrences.rg_lru_scan"


class Scan(torch.nn.Module):
    def forward(self, hidden, gate, reset, state):
        return RecurrentGemmaRglru._rnn_scan(None, hidden, gate, reset > 0, state)


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    return {
        "hidden": torch.randn(batch, length, 6, generator=g),
        "gate": torch.rand(batch, length, 6, generator=g),
        "reset": (torch.rand(batch, length, 1, generator=g) > 0.8).long(),
        "state": torch.randn(batch, 6, generator=g),
    }


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the loop over the sequence freezes its length")
def test_needed(runs_like):
    runs_like(Scan(), inputs(2, 7), [inputs(2, 5)], without=[ID])


def test_works(runs_like):
    """Also where a document begins in the middle (a gate of exactly 0), and from a state."""
    runs_like(Scan(), inputs(2, 7), [inputs(3, 5), inputs(2, 40), inputs(2, 1)])
