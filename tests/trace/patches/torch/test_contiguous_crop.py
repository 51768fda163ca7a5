from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

ID = "trace.patches.torch.contiguous_crop"


class Crop(torch.nn.Module):
    """Pads to whole fours and crops again: nothing to crop at the traced size."""

    def forward(self, x):
        batch, height, width = x.shape
        padded = F.pad(x, (0, (width + 3) // 4 * 4 - width)) * 2
        return padded[:, :, :width].contiguous().view(batch, height * width)


def inputs(width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(3, 5, width, generator=torch.Generator().manual_seed(width))}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the call of contiguous() is dropped from the trace")
def test_needed(runs_like):
    runs_like(Crop(), inputs(8), [inputs(7)], without=[ID])


def test_works(runs_like):
    runs_like(Crop(), inputs(8), [inputs(7), inputs(9), inputs(12)])
