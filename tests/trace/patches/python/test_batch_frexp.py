from __future__ import annotations

import pytest
import torch
from transformers.models.ibert import quant_modules

from transformers_exporters.trace.patches.python.batch_frexp import in_torch

ID = "trace.patches.python.batch_frexp"


class Scaled(torch.nn.Module):
    def forward(self, scale, values):
        whole, power = quant_modules.batch_frexp(scale)
        return torch.round(values.to(torch.float64) * whole / 2.0**power), whole, power


def inputs(size: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(size)
    scale = torch.rand(1, 1, size, dtype=torch.float64, generator=g) / 64
    return {"scale": scale, "values": torch.randn(2, 3, size, generator=g) * 100}


@pytest.mark.xfail(strict=True, reason="numpy has no values to work with")
def test_needed(runs_like):
    runs_like(Scaled(), inputs(5), [inputs(7)], without=[ID])


def test_works(runs_like):
    runs_like(Scaled(), inputs(5), [inputs(7), inputs(40)])


def test_as_numpy_does():
    """Powers of two and their neighbours, halves, signs and zero: every mantissa and exponent is the same."""
    edges = torch.tensor([2.0**n for n in range(-40, 8)], dtype=torch.float64)
    above, below = (torch.nextafter(edges, torch.tensor(end, dtype=torch.float64)) for end in (1e9, -1e9))
    halves = (torch.arange(2**30, 2**30 + 40, dtype=torch.float64) + 0.5) / 2**31
    scale = torch.cat([edges, above, below, halves, -halves, torch.zeros(1, dtype=torch.float64)])
    for got, wanted in zip(in_torch(quant_modules.batch_frexp)(scale), quant_modules.batch_frexp(scale), strict=True):
        assert torch.equal(got, wanted)
