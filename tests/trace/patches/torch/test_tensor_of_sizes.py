from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.tensor_of_sizes"


class Shapes(torch.nn.Module):
    def forward(self, x):
        height, width = x.shape[-2:]
        levels = [(height, width), (height // 2, 3)]
        return (
            torch.as_tensor(levels, dtype=torch.long),
            torch.tensor([width, 2]) * 2,
            torch.tensor(height),
            x + x.new_tensor(height) + x.new_tensor([1.0, width / 4])[1] + x.new_tensor([2, 3])[0],
            x / torch.tensor([width, 0.5]).max(),
        )


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.linspace(0, 1, height * width).reshape(1, height, width)}


@pytest.mark.xfail(strict=True, reason="the traced sizes are baked in")
def test_needed(runs_like):
    runs_like(Shapes(), inputs(8, 12), [inputs(16, 10)], without=[ID])


def test_works(runs_like):
    runs_like(Shapes(), inputs(8, 12), [inputs(16, 10), inputs(30, 44)])


def test_plain_numbers_are_left_alone(runs_like):
    class Plain(torch.nn.Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0]).sum() + torch.as_tensor(3)

    runs_like(Plain(), inputs(8, 12), [inputs(16, 10)])


class Scalars(torch.nn.Module):
    """Positions that are counted on from what was computed."""

    def forward(self, x):
        last = x.sum().long()
        return (
            torch.tensor([last + 1], dtype=torch.long),
            torch.tensor([last, x.shape[-1]]),
            torch.as_tensor([x.amax(), 0.5]),
            torch.tensor([last > 3, last > 1000]),
        )


@pytest.mark.xfail(strict=True, reason="a tensor of computed scalars is refused")
def test_scalars_needed(runs_like):
    runs_like(Scalars(), inputs(8, 12), [inputs(16, 10)], without=[ID])


def test_scalars(runs_like):
    runs_like(Scalars(), inputs(8, 12), [inputs(16, 10), inputs(3, 4)])
