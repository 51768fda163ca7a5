from __future__ import annotations

import pytest
import torch
from transformers.models.timesfm2_5.configuration_timesfm2_5 import TimesFm2_5Config
from transformers.models.timesfm2_5.modeling_timesfm2_5 import TimesFm2_5ModelForPrediction

ID = "trace.patches.series.equal_series"


def model() -> TimesFm2_5ModelForPrediction:
    torch.manual_seed(0)
    config = TimesFm2_5Config(
        patch_length=4,
        context_length=32,
        horizon_length=4,
        output_quantile_len=4,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
    )
    return TimesFm2_5ModelForPrediction(config).eval()


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"past_values": torch.randn(batch, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, reason="the loop over series fixes their number")
def test_needed(runs_like):
    runs_like(model(), inputs(3, 20), [inputs(2, 20)], without=[ID])


def test_works(runs_like):
    """Series that are shorter, as long and longer than what the model looks at."""
    runs_like(model(), inputs(3, 20), [inputs(2, 7), inputs(1, 32), inputs(4, 50)])
