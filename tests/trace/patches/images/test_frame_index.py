from __future__ import annotations

import pytest
import torch
from transformers.models.kimi_k25 import modeling_kimi_k25

ID = "trace.patches.images.frame_index"


class Index(torch.nn.Module):
    def forward(self, grid):
        return modeling_kimi_k25.get_vision_frame_index(grid)


def inputs(*grid: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    return {"grid": torch.tensor(grid)}


@pytest.mark.xfail(strict=True, reason="the loop over clips reads their sizes")
def test_needed(runs_like):
    runs_like(Index(), inputs((1, 4, 6), (2, 4, 4)), [inputs((1, 2, 8), (1, 4, 6), (1, 2, 2))], without=[ID])


def test_works(runs_like):
    """Images have frame 0, the frames of a clip count from 1."""
    runs_like(Index(), inputs((1, 4, 6), (2, 4, 4)), [inputs((1, 2, 8), (1, 4, 6), (3, 2, 2)), inputs((2, 6, 10))])
