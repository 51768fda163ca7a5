from __future__ import annotations

import pytest
import torch
from transformers import LongformerConfig, LongformerModel

ID = "trace.patches.attention.longformer_attention"


def build() -> LongformerModel:
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=128,
        attention_window=4,
    )
    return LongformerModel(config)


def inputs(batch: int, length: int, *tokens: int) -> dict[str, torch.Tensor]:
    """With the given tokens global, and the last three of the first row padding."""
    g = torch.Generator().manual_seed(length)
    mask, chosen = torch.ones(batch, length, dtype=torch.long), torch.zeros(batch, length, dtype=torch.long)
    mask[0, -3:] = 0
    chosen[:, list(tokens)] = 1
    ids = torch.randint(2, 64, (batch, length), generator=g)
    return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": chosen}


@pytest.mark.xfail(strict=True, reason="the number of global tokens is data")
def test_needed(runs_like):
    runs_like(build(), inputs(2, 19, 0), [inputs(2, 30, 0, 5)], without=[ID])


def test_works(runs_like):
    """No global token, one, and several; lengths that are and are not whole windows."""
    runs_like(build(), inputs(2, 19, 0), [inputs(3, 30, 0, 5, 6), inputs(2, 16), inputs(2, 40, 39), inputs(2, 7, 2)])
