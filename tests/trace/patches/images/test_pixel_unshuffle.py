from __future__ import annotations

import pytest
import torch
from transformers.models.video_llama_3.modeling_video_llama_3 import VideoLlama3VisionModel

ID = "trace.patches.images.pixel_unshuffle"


class Unshuffled(torch.nn.Module):
    def forward(self, hidden, grid, sizes):
        return VideoLlama3VisionModel.pixel_unshuffle(self, hidden, grid, sizes)


def inputs(*grid: tuple[int, int, int], sizes) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(grid))
    hidden = torch.randn(sum(t * h * w for t, h, w in grid), 6, generator=g)
    return {"hidden": hidden, "grid": torch.tensor(grid), "sizes": torch.tensor(sizes)}


TRACED = inputs((1, 4, 6), (2, 4, 4), sizes=(1, 2))
OTHERS = [
    inputs((1, 2, 8), (1, 6, 6), (3, 8, 4), (1, 2, 2), sizes=(2, 3, 4, 1)),  # odd and even sides
    inputs((2, 6, 10), sizes=(2,)),
]


@pytest.mark.xfail(strict=True, reason="the loop over images reads their sizes")
def test_needed(runs_like):
    runs_like(Unshuffled(), TRACED, OTHERS, without=[ID])


def test_works(runs_like):
    """Other numbers of images and clips, each with its own side of a block."""
    runs_like(Unshuffled(), TRACED, OTHERS)
