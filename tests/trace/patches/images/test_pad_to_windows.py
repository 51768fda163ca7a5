from __future__ import annotations

import pytest
import torch
from transformers import SwinConfig
from transformers.models.swin.modeling_swin import SwinLayer, SwinPatchEmbeddings, SwinPatchMerging

ID = "trace.patches.images.pad_to_windows"


class Stage(torch.nn.Module):
    """Patch embedding, a shifted window layer, a patch merging, and a layer on what it left."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        config = SwinConfig(image_size=32, patch_size=2, num_channels=3, embed_dim=8, window_size=4, num_heads=[2, 2])
        self.embed = SwinPatchEmbeddings(config)
        self.layer = SwinLayer(config, 8, (16, 16), 2, shift_size=2)
        self.merge = SwinPatchMerging(8)
        self.second = SwinLayer(config, 16, (8, 8), 2, shift_size=2)

    def forward(self, pixel_values):
        x, (height, width) = self.embed(pixel_values)
        x = self.layer(x, (height, width), True)[0]
        x = self.merge(x, (height, width))
        return self.second(x, ((height + 1) // 2, (width + 1) // 2), True)[0]


def image(height: int, width: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(height)
    return {"pixel_values": torch.randn(2, 3, height, width, generator=g)}


@pytest.mark.xfail(strict=True, reason="the branch on whether to pad is kept")
def test_needed(runs_like):
    runs_like(Stage(), image(32, 48), [image(37, 30)], without=[ID])


@pytest.mark.parametrize("traced", [(32, 48), (35, 42)])
def test_works(runs_like, traced):
    """Sizes that do and do not divide by patches, windows and pairs."""
    runs_like(Stage(), image(*traced), [image(37, 30), image(64, 32), image(20, 26), image(18, 19)])
