from __future__ import annotations

import io
import types

import pytest
import torch
from transformers.models.internvl import modeling_internvl

ID = "trace.patches.python.builtin_round"


def cropped(x):
    assert round(2.5) == 2
    assert round(2.46, 1) == 2.5
    height, width = x.shape
    return x[: int(round(height * (width / height) * 0.7, 7)), : round(width / 3.7)] + round(width), -round(
        height / -3.3
    )


class Cropped(torch.nn.Module):
    """`round` as a function of a modelling module sees it."""

    def forward(self, x):
        part, third = types.FunctionType(cropped.__code__, vars(modeling_internvl))(x)
        return part, torch.zeros(third)


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.arange(height * width).reshape(height, width).float()}


OTHERS = [inputs(16, 10), inputs(17, 11), inputs(30, 9)]


@pytest.mark.xfail(strict=True, reason="a program cannot be saved with a round in it")
def test_needed(runs_like):
    torch.export.save(runs_like(Cropped(), inputs(8, 12), OTHERS, without=[ID]), io.BytesIO())


def test_works(runs_like):
    torch.export.save(runs_like(Cropped(), inputs(8, 12), OTHERS), io.BytesIO())


def halved(x):
    length = x.shape[0]
    return x[: round(length / 4)], x[: round(length * 0.5)], x[: round(length / 3)]


class Halved(torch.nn.Module):
    def forward(self, x):
        return types.FunctionType(halved.__code__, vars(modeling_internvl))(x)


def test_halves_go_to_the_even_neighbour(runs_like):
    lengths = [{"x": torch.arange(length).float()} for length in (2, 5, 6, 7, 10, 14, 26, 31)]
    runs_like(Halved(), {"x": torch.arange(12).float()}, lengths)
