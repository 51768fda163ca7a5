from __future__ import annotations

import pytest
import torch
from transformers.models.qwen3_vl import modeling_qwen3_vl

ID = "trace.patches.images.vision_interpolation"


class Positions(torch.nn.Module):
    """Indices and weights into a table of 4 x 4 positions, for every patch."""

    def forward(self, grid: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return modeling_qwen3_vl.get_vision_interpolation_indices_and_weights(
            grid, num_grid_per_side=4, mode="bilinear", align_corners=True, spatial_merge_size=2
        )


def grid(*sizes: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    return {"grid": torch.tensor(sizes)}


@pytest.mark.xfail(strict=True, reason="traced with two images, the graph takes two for ever")
def test_needed(runs_like):
    runs_like(Positions(), grid((1, 4, 4), (1, 2, 6)), [grid((1, 4, 4), (1, 2, 2), (1, 6, 4))], without=[ID])


def test_works(runs_like):
    others = [grid((1, 4, 4), (1, 2, 2), (1, 6, 4)), grid((2, 4, 6), (1, 2, 4))]
    runs_like(Positions(), grid((1, 4, 4), (1, 2, 6)), others)
