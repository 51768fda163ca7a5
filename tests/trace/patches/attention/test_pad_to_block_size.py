from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers.models.big_bird.modeling_big_bird import BigBirdModel

ID = "trace.patches.attention.pad_to_block_size"


class Pad(torch.nn.Module):
    """Pads and crops again, as the model's forward does."""

    def forward(self, input_ids, attention_mask):
        model = SimpleNamespace(config=SimpleNamespace(block_size=4, pad_token_id=9))
        padding, ids, mask, *_ = BigBirdModel._pad_to_block_size(
            model, input_ids, attention_mask, torch.zeros_like(input_ids), None, None, 9
        )
        cropped = ids[:, :-padding] if padding > 0 else ids
        return ids, mask, cropped


def inputs(length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, 8, (3, length)), "attention_mask": torch.ones(3, length, dtype=torch.long)}


@pytest.mark.xfail(strict=True, raises=(RuntimeError, AssertionError), reason="the branch of the traced length is kept")
def test_needed(runs_like):
    runs_like(Pad(), inputs(16), [inputs(18)], without=[ID])


@pytest.mark.parametrize("traced", [16, 18])
def test_works(runs_like, traced):
    runs_like(Pad(), inputs(traced), [inputs(n) for n in (5, 8, 15, 16, 17, 40)])
