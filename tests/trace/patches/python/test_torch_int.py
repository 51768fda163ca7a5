from __future__ import annotations

import pytest
import torch
from transformers.models.vit import modeling_vit

ID = "trace.patches.python.torch_int"


class Resized(torch.nn.Module):
    """Positions of a 6 × 6 image, resized to half of the image that comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = torch.nn.Parameter(torch.linspace(0, 1, 36).reshape(1, 1, 6, 6))

    def forward(self, x):
        height, width = x.shape[-2:]
        size = modeling_vit.torch_int(height // 2), modeling_vit.torch_int(width * 0.5)
        return torch.nn.functional.interpolate(self.positions, size=size, mode="bicubic") * modeling_vit.torch_int(2.5)


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.zeros(2, 1, height, width)}


@pytest.mark.xfail(strict=True, reason="the traced size is baked in")
def test_needed(runs_like):
    runs_like(Resized(), inputs(8, 12), [inputs(16, 10)], without=[ID])


def test_works(runs_like):
    runs_like(Resized(), inputs(8, 12), [inputs(16, 10), inputs(30, 44)])
