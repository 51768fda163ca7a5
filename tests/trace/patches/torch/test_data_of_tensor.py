from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

ID = "trace.patches.torch.data_of_tensor"


class Detached(torch.nn.Module):
    """`.data` of a weight and of what was computed."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))

    def forward(self, x):
        return x @ self.weight.data.abs() + (x * 2).data.amax(-1, keepdim=True)


def inputs(rows: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(rows, 2, generator=torch.Generator().manual_seed(rows))}


@pytest.mark.xfail(strict=True, reason="a fake tensor among the constants")
def test_needed(runs_like):
    runs_like(Detached(), inputs(3), [inputs(5)], without=[ID])


def test_works(runs_like):
    runs_like(Detached(), inputs(3), [inputs(5), inputs(1)])
    assert "data" not in vars(FakeTensor), "the class is as it was"
