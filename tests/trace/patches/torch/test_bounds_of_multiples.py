from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.bounds_of_multiples"


class Filled(torch.nn.Module):
    """Features in the places that are marked for them."""

    def forward(self, embeddings, marked, features):
        features = features.unsqueeze(-1).expand(-1, 32)
        marked = marked.unsqueeze(-1).expand(-1, -1, 32)
        torch._check(embeddings[marked].numel() == features.numel())
        return embeddings.masked_scatter(marked, features)


def inputs(*marked: int) -> dict[str, torch.Tensor]:
    places = torch.zeros(2, 8, dtype=torch.bool)
    places.flatten()[list(marked)] = True
    return {"embeddings": torch.randn(2, 8, 32), "marked": places, "features": torch.randn(len(marked))}


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a bound that was rounded does not fit")
def test_needed(runs_like):
    runs_like(Filled(), inputs(1, 2, 9), [], without=[ID])


def test_works(runs_like):
    runs_like(Filled(), inputs(1, 2, 9), [inputs(0, 3, 4, 12, 15), inputs(7, 8)])
