from __future__ import annotations

import pytest
import torch
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl

ID = "trace.patches.images.vision_window_index"


class Order(torch.nn.Module):
    """The order of the tokens, and the boundaries of the windows."""

    def forward(self, grid):
        return modeling_qwen2_5_vl.get_vision_window_index(grid, 2, 16, 4)


def inputs(*grid: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    return {"grid": torch.tensor(grid)}


@pytest.mark.xfail(strict=True, reason="the loop over images reads their sizes")
def test_needed(runs_like):
    runs_like(Order(), inputs((1, 8, 12), (2, 4, 4)), [inputs((1, 2, 8), (1, 4, 6))], without=[ID])


def test_works(runs_like):
    """Whole windows, cut windows, several frames, other numbers of images."""
    others = [inputs((1, 2, 8), (1, 4, 6), (3, 2, 2)), inputs((2, 6, 10)), inputs((1, 8, 8), (1, 10, 6))]
    runs_like(Order(), inputs((1, 8, 12), (2, 4, 4)), others)
