from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers.models.hunyuan_vl.configuration_hunyuan_vl import HunYuanVLVisionConfig
from transformers.models.hunyuan_vl.modeling_hunyuan_vl import HunYuanVLVisionPatchEmbed
from transformers.models.hy_v4_vl.configuration_hy_v4_vl import HYV4VLVisionConfig
from transformers.models.hy_v4_vl.modeling_hy_v4_vl import HYV4VLVisionPatchEmbed

ID = "trace.patches.images.interpolated_table"
KINDS: list[Any] = [
    (HunYuanVLVisionPatchEmbed, HunYuanVLVisionConfig),
    (HYV4VLVisionPatchEmbed, HYV4VLVisionConfig),  # its scale is a little larger than the size asked for
]


def model(kind: Any, mode: str = "bilinear") -> torch.nn.Module:
    torch.manual_seed(0)
    embed, config = kind
    return embed(config(hidden_size=8, patch_size=2, max_image_size=10, interpolate_mode=mode)).eval()


def inputs(*grids: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(grids))
    return {
        "pixel_values": torch.randn(sum(t * h * w for t, h, w in grids), 12, generator=g),
        "grid_thw": torch.tensor(grids),
    }


TRACED = inputs((1, 4, 6), (1, 3, 7))
OTHERS = [inputs((1, 2, 2), (1, 9, 5), (1, 3, 3)), inputs((1, 12, 4), (1, 5, 5))]


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_needed(runs_like):
    runs_like(model(KINDS[0]), TRACED, OTHERS, without=[ID])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("kind", KINDS, ids=["size", "scale"])
def test_works(runs_like, kind, mode):
    """Other numbers of images, smaller and larger than the table, and as large."""
    runs_like(model(kind, mode), TRACED, OTHERS)
