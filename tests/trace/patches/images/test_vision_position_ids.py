from __future__ import annotations

import pytest
import torch
from transformers.models.qwen2_vl import modeling_qwen2_vl

ID = "trace.patches.images.vision_position_ids"


class Ids(torch.nn.Module):
    def __init__(self, include_temporal: bool):
        super().__init__()
        self.include_temporal = include_temporal

    def forward(self, grid):
        return modeling_qwen2_vl.get_vision_position_ids(grid, 2, self.include_temporal)


def inputs(*grid: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    return {"grid": torch.tensor(grid)}


@pytest.mark.xfail(strict=True, reason="the loop over images reads their sizes")
def test_needed(runs_like):
    runs_like(Ids(False), inputs((1, 4, 6), (2, 4, 4)), [inputs((1, 2, 8), (1, 4, 6), (1, 2, 2))], without=[ID])


@pytest.mark.parametrize("include_temporal", [False, True])
def test_works(runs_like, include_temporal):
    others = [inputs((1, 2, 8), (1, 4, 6), (3, 2, 2)), inputs((2, 6, 10))]
    runs_like(Ids(include_temporal), inputs((1, 4, 6), (2, 4, 4)), others)
