from __future__ import annotations

import pytest
import torch
from transformers.models.rwkv import modeling_rwkv

ID = "trace.patches.recurrences.rwkv_attention"


class Attention(torch.nn.Module):
    def forward(self, decay, first, key, value):
        output, state = modeling_rwkv.rwkv_linear_attention(decay, first, key, value, None, return_state=True)
        return output, *state


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    return {
        "decay": torch.randn(6, generator=g),
        "first": torch.randn(6, generator=g),
        # Keys of +-60: without the running maximum their exponentials overflow.
        "key": torch.randn(batch, length, 6, generator=g) * 30,
        "value": torch.randn(batch, length, 6, generator=g),
    }


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the loop over the sequence freezes its length")
def test_needed(runs_like):
    runs_like(Attention(), inputs(2, 7), [inputs(2, 5)], without=[ID])


def test_works(runs_like):
    runs_like(Attention(), inputs(2, 7), [inputs(3, 5), inputs(2, 16), inputs(2, 45)])
