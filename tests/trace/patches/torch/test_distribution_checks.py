from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical, Normal

ID = "trace.patches.torch.distribution_checks"


class Entropy(torch.nn.Module):
    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = torch.nn.functional.softplus(logits)
        return Categorical(logits=logits).entropy(), Normal(logits, scale, True).log_prob(logits * 2)


@pytest.mark.xfail(strict=True, reason="whether all logits are real numbers is data")
def test_needed(runs_like):
    runs_like(Entropy(), {"logits": torch.randn(2, 5, 7)}, [], without=[ID])


def test_works(runs_like):
    runs_like(Entropy(), {"logits": torch.randn(2, 5, 7)}, [{"logits": torch.randn(4, 3, 7)}])
