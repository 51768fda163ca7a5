from __future__ import annotations

import pytest
import torch

from transformers_exporters.trace.assumptions import answered_from_sample

ID = "trace.patches.torch.quotient_assertions"
#: Of two fractions that are data, this one leaves nothing to assert.
COMPUTED = "trace.patches.python.builtin_max"


class Fitting(torch.nn.Module):
    """Chooses by the side of an image that is the tighter one, as values say it."""

    def forward(self, x, size):
        height, width = size.tolist()
        scale = min(16 / width, 12 / height)
        return x * scale


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.ones(2, 3), "size": torch.tensor([height, width])}


@pytest.mark.xfail(strict=True, reason="the assertion asks the graph for a number")
def test_needed(runs_like):
    with answered_from_sample("model"):
        runs_like(Fitting(), inputs(8, 20), [inputs(4, 21)], without=[ID, COMPUTED])


def test_works(runs_like):
    with answered_from_sample("model"):
        runs_like(Fitting(), inputs(8, 20), [inputs(4, 21)])
