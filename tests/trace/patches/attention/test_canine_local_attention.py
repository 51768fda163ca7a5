from __future__ import annotations

import pytest
import torch
from transformers import CanineConfig
from transformers.models.canine.modeling_canine import CanineAttention

ID = "trace.patches.attention.canine_local_attention"


def build() -> CanineAttention:
    torch.manual_seed(0)
    config = CanineConfig(hidden_size=16, num_attention_heads=2)
    width = dict.fromkeys(
        ("attend_from_chunk_width", "attend_from_chunk_stride", "attend_to_chunk_width", "attend_to_chunk_stride"), 8
    )
    return CanineAttention(config, local=True, **width)


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    kept = torch.ones(batch, 1, length)
    kept[0, :, max(0, length - 9) :] = 0  # one chunk is all padding
    return {
        "hidden_states": torch.randn(batch, length, 16, generator=g),
        "attention_mask": kept.expand(batch, length, length).contiguous(),
    }


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the loop over chunks freezes the length")
def test_needed(runs_like):
    runs_like(build(), inputs(3, 19), [inputs(3, 30)], without=[ID])


def test_works(runs_like):
    runs_like(build(), inputs(3, 19), [inputs(2, n) for n in (5, 8, 16, 30, 41)])
