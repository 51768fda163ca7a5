from __future__ import annotations

import pytest
import torch
from transformers.models.reformer.configuration_reformer import ReformerConfig
from transformers.models.reformer.modeling_reformer import AxialPositionEmbeddings

ID = "trace.patches.attention.axial_positions"


def embeddings() -> torch.nn.Module:
    torch.manual_seed(0)
    config = ReformerConfig(
        axial_pos_embds=True, axial_pos_shape=(4, 8), axial_pos_embds_dim=(6, 10), hidden_size=16, attn_layers=["local"]
    )
    module = AxialPositionEmbeddings(config).eval()
    for weight in module.weights:
        torch.nn.init.normal_(weight)
    return module


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"position_ids": (torch.arange(length) + torch.arange(batch).unsqueeze(1)) % 32}


@pytest.mark.xfail(strict=True, reason="the batch is baked in")
def test_needed(runs_like):
    runs_like(embeddings(), inputs(3, 20), [inputs(2, 12)], without=[ID])


def test_works(runs_like):
    runs_like(embeddings(), inputs(3, 20), [inputs(2, 12), inputs(1, 5), inputs(5, 32)])
