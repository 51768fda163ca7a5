from __future__ import annotations

import pytest
import torch
from transformers import AutoformerConfig
from transformers.models.autoformer.modeling_autoformer import AutoformerEncoder

ID = "trace.patches.attention.autoformer_mask"


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = AutoformerConfig(
            prediction_length=4,
            context_length=14,
            d_model=16,
            encoder_layers=1,
            encoder_attention_heads=4,
            encoder_ffn_dim=16,
            feature_size=3,
        )
        self.encoder = AutoformerEncoder(config).eval()

    def forward(self, x):
        return self.encoder(inputs_embeds=x).last_hidden_state


def inputs(batch: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, 14, 3, generator=torch.Generator().manual_seed(batch))}


@pytest.mark.xfail(strict=True, reason="a trace makes a mask that the model cannot add")
def test_needed(runs_like):
    runs_like(Encoder(), inputs(3), [], without=[ID])


def test_works(runs_like):
    runs_like(Encoder(), inputs(3), [inputs(5)])
