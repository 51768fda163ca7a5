from __future__ import annotations

import pytest
import torch
from transformers import BigBirdConfig, BigBirdModel

ID = "trace.patches.attention.block_sparse_attention"


def build() -> BigBirdModel:
    torch.manual_seed(0)
    config = BigBirdConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=128,
        block_size=4,
        num_random_blocks=2,
        attention_type="block_sparse",
    )
    return BigBirdModel(config)


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, length - 7 :] = 0
    return {"input_ids": torch.randint(1, 64, (batch, length), generator=g), "attention_mask": mask}


@pytest.mark.xfail(strict=True, reason="the plan of random blocks is made for the traced length")
def test_needed(runs_like):
    runs_like(build(), inputs(2, 64), [inputs(2, 77)], without=[ID])


def test_works(runs_like):
    """Whole blocks or not, with padding, in a quarter of the nodes that the model's own code traces to."""
    program = runs_like(build(), inputs(2, 62), [inputs(3, n) for n in (40, 64, 77, 128)])
    assert len(program.graph.nodes) < 300
