from __future__ import annotations

import pytest
import torch
from transformers import FunnelBaseModel, FunnelConfig

ID = "trace.patches.attention.funnel_positions"


def build(**options) -> FunnelBaseModel:
    torch.manual_seed(0)
    config = FunnelConfig(
        vocab_size=64,
        block_sizes=[1, 1, 1],
        d_model=16,
        n_head=2,
        d_head=8,
        d_inner=16,
        num_decoder_layers=1,
        **options,
    )
    return FunnelBaseModel(config)


def ids(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, 64, (batch, length), generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="lists of positions freeze the length")
def test_needed(runs_like):
    runs_like(build(), ids(3, 19), [ids(3, 15)], without=[ID])


@pytest.mark.parametrize(
    "options", [{}, {"truncate_seq": False}, {"separate_cls": False}, {"pool_q_only": False}], ids=str
)
def test_works(runs_like, options):
    """For even and odd lengths at every level, and every way to pool."""
    runs_like(build(**options), ids(3, 19), [ids(2, n) for n in (12, 15, 16, 17, 18, 40)])
