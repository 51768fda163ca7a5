from __future__ import annotations

import pytest
import torch
from transformers.models.minicpmv4_6 import modeling_minicpmv4_6

ID = "trace.patches.images.nearest_positions"


class Ids(torch.nn.Module):
    def forward(self, sizes):
        return modeling_minicpmv4_6.get_vision_nearest_position_ids(sizes, 7)


def inputs(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    return {"sizes": torch.tensor(sizes, dtype=torch.int32)}


@pytest.mark.xfail(strict=True, reason="the loop over images reads their sizes")
def test_needed(runs_like):
    runs_like(Ids(), inputs((4, 6), (14, 3)), [inputs((2, 8), (4, 6), (2, 2))], without=[ID])


def test_works(runs_like):
    runs_like(Ids(), inputs((4, 6), (14, 3)), [inputs((2, 8), (4, 6), (2, 2)), inputs((21, 10)), inputs((7, 49))])
