from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers.models.cpmant.modeling_cpmant import CpmAntModel

ID = "trace.patches.attention.cpmant_mask"


class Mask(torch.nn.Module):
    def forward(self, input_ids, length):
        span, context = torch.zeros_like(input_ids), input_ids % 2
        return CpmAntModel._prepare_attention_mask(SimpleNamespace(prompt_length=3), input_ids, span, context, length)


def inputs(batch: int, size: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(size)
    return {
        "input_ids": torch.randint(0, 9, (batch, size), generator=g),
        "length": torch.randint(1, size - 3, (batch,), generator=g),
    }


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="a list of positions freezes the length")
def test_needed(runs_like):
    runs_like(Mask(), inputs(2, 9), [inputs(2, 12)], without=[ID])


def test_works(runs_like):
    runs_like(Mask(), inputs(2, 9), [inputs(3, 12), inputs(4, 6)])
