from __future__ import annotations

import pytest
import torch
from transformers.models.hunyuan_vl.configuration_hunyuan_vl import HunYuanVLVisionConfig
from transformers.models.hunyuan_vl.modeling_hunyuan_vl import HunYuanVLVisionTransformer

ID = "trace.patches.images.rows_with_separators"


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    config = HunYuanVLVisionConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        attention_heads=2,
        num_attention_heads=2,
        text_hidden_size=12,
        patch_size=2,
        max_image_size=16,
        spatial_merge_size=2,
    )
    vision = HunYuanVLVisionTransformer(config)
    for parameter in vision.patch_merger.parameters():
        torch.nn.init.normal_(parameter)
    return vision.eval()


def inputs(*grids: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(grids))
    return {
        "pixel_values": torch.randn(sum(t * h * w for t, h, w in grids), 12, generator=g),
        "grid_thw": torch.tensor(grids),
    }


TRACED = inputs((1, 4, 6), (1, 4, 8))
OTHERS = [inputs((1, 4, 4), (1, 8, 6), (1, 6, 4)), inputs((1, 12, 4))]


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_needed(runs_like):
    runs_like(model(), TRACED, OTHERS, without=[ID])


def test_works(runs_like):
    """Other numbers of images, of other and of unequal sizes."""
    runs_like(model(), TRACED, OTHERS)


def test_patches_that_fill_no_block_are_dropped(runs_like):
    runs_like(model(), TRACED, [inputs((1, 5, 7), (1, 4, 5))])
