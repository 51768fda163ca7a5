from __future__ import annotations

import pytest
import torch
from transformers.models.muse_glimmer import modeling_muse_glimmer

ID = "trace.patches.images.pixel_shuffle_index"


class Index(torch.nn.Module):
    def forward(self, grid):
        return modeling_muse_glimmer.get_vision_pixel_shuffle_index(grid, 2)


def inputs(*grid: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    return {"grid": torch.tensor(grid)}


@pytest.mark.xfail(strict=True, reason="the loop over images reads their sizes")
def test_needed(runs_like):
    runs_like(Index(), inputs((1, 4, 6), (2, 4, 4)), [inputs((1, 2, 8), (1, 4, 6), (1, 2, 2))], without=[ID])


def test_works(runs_like):
    """Other numbers of images and clips."""
    runs_like(Index(), inputs((1, 4, 6), (2, 4, 4)), [inputs((1, 2, 8), (1, 4, 6), (3, 2, 2)), inputs((2, 6, 10))])
