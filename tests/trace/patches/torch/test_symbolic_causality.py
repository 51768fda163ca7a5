from __future__ import annotations

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

ID = "trace.patches.torch.symbolic_causality"


class Attention(torch.nn.Module):
    """Over every second state, which is one at the traced length."""

    is_causal = False

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        kept = states[:, None, : states.shape[1] // 2]
        return sdpa_attention_forward(self, kept, kept, kept, None)[0]


@pytest.mark.xfail(strict=True, reason="is_causal must be bool, not SymBool")
def test_needed(runs_like):
    runs_like(Attention(), {"states": torch.randn(2, 3, 4)}, [{"states": torch.randn(3, 3, 4)}], without=[ID])


def test_works(runs_like):
    others = [{"states": torch.randn(3, 3, 4)}, {"states": torch.randn(2, 9, 4)}]
    runs_like(Attention(), {"states": torch.randn(2, 3, 4)}, others)
