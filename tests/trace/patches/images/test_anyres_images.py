from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaNextConfig,
    LlavaNextModel,
    LlavaOnevisionConfig,
    LlavaOnevisionModel,
    SiglipVisionConfig,
)
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.models.deepseek_ocr2.modeling_deepseek_ocr2 import DeepseekOcr2Model
from transformers.models.step3p7.modeling_step3p7 import Step3p7Model
from transformers.models.unlimited_ocr.modeling_unlimited_ocr import UnlimitedOcrModel

ID = "trace.patches.images.anyres_images"


class Features(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        vision = CLIPVisionConfig(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=16,
            patch_size=4,
        )
        text = LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, vocab_size=9)
        grids = [[16, 32], [32, 16], [32, 32], [48, 16]]
        self.model = LlavaNextModel(
            LlavaNextConfig(vision_config=vision, text_config=text, image_grid_pinpoints=grids)
        ).eval()

    def forward(self, pixel_values, image_sizes):
        return torch.cat(self.model.get_image_features(pixel_values, image_sizes, return_dict=True).pooler_output)


def inputs(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(sizes))
    return {"pixel_values": torch.randn(len(sizes), 5, 3, 16, 16, generator=g), "image_sizes": torch.tensor(sizes)}


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_needed(runs_like):
    runs_like(Features(), inputs((30, 20), (16, 40)), [inputs((9, 9), (60, 16), (31, 33))], without=[ID])


def test_works(runs_like):
    """Other numbers of images, whose tiles are 1 by 2, 2 by 1, 2 by 2 and 3 by 1."""
    runs_like(Features(), inputs((30, 20), (16, 40)), [inputs((9, 9), (60, 16), (31, 33)), inputs((10, 70))])


def test_tiles_that_are_packed(runs_like):
    """Pictures of all images, one after the other, as some processors give them."""
    flat = [
        {"pixel_values": torch.randn(tiles, 3, 16, 16), "image_sizes": torch.tensor(sizes)}
        for tiles, sizes in ((8, ((30, 30), (16, 40))), (3, ((10, 70),)))
    ]
    runs_like(Features(), flat[0], flat[1:])


class ScaledDown(torch.nn.Module):
    """LLaVA-OneVision with features of two tiles at most: larger images are resized."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        vision = SiglipVisionConfig(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=16,
            patch_size=4,
        )
        text = LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, vocab_size=9)
        config = LlavaOnevisionConfig(
            vision_config=vision,
            text_config=text,
            image_grid_pinpoints=[[16, 32], [32, 16], [32, 32], [48, 48]],
            vision_aspect_ratio="anyres_max_2",
        )
        self.model = LlavaOnevisionModel(config).eval()

    def forward(self, pixel_values, image_sizes):
        return torch.cat(self.model.get_image_features(pixel_values, image_sizes, return_dict=True).pooler_output)


def tiles(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(sizes))
    return {"pixel_values": torch.randn(len(sizes), 10, 3, 16, 16, generator=g), "image_sizes": torch.tensor(sizes)}


def test_tiles_that_are_scaled_down(runs_like):
    """1 by 2, 2 by 2 and 3 by 3 tiles; wide and tall ones, of which padding is cut off."""
    others = [tiles((90, 90), (16, 40), (47, 33)), tiles((20, 100)), tiles((70, 30), (32, 32))]
    runs_like(ScaledDown(), tiles((30, 20), (48, 48)), others)


class Crops(torch.nn.Module):
    """A model's order of views and crops, around a small tower."""

    def __init__(self, kind: type[torch.nn.Module]) -> None:
        super().__init__()
        self.kind = kind
        self.config = SimpleNamespace(return_dict=True)
        torch.manual_seed(0)
        self.vision = torch.nn.Conv2d(3, 4, 4, stride=4)
        self.multi_modal_projector = torch.nn.Linear(4, 6)
        if kind is not Step3p7Model:
            self.view_separator = torch.nn.Parameter(torch.randn(6))
            self.image_newline = torch.nn.Parameter(torch.randn(6))

    def vision_tower(self, pixel_values, **kwargs):
        return BaseModelOutputWithPooling(last_hidden_state=self.vision(pixel_values).flatten(2).transpose(1, 2))

    vision_model = vision_tower

    def forward(self, pixel_values, pixel_values_local=None, num_local_patches=None):
        features = self.kind.get_image_features(
            self, pixel_values, pixel_values_local, num_local_patches, return_dict=True
        )
        return torch.cat(features.pooler_output)


def views(images: int, *crops: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(images)
    given = {"pixel_values": torch.randn(images, 3, 16, 16, generator=g)}
    if crops:
        given["pixel_values_local"] = torch.randn(sum(crops), 3, 8, 8, generator=g)
        given["num_local_patches"] = torch.tensor(crops)
    return given


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_crops_needed(runs_like):
    runs_like(Crops(DeepseekOcr2Model), views(2), [views(3)], without=[ID])


@pytest.mark.parametrize("kind", [DeepseekOcr2Model, Step3p7Model, UnlimitedOcrModel])
def test_views_without_crops(runs_like, kind):
    runs_like(Crops(kind), views(2), [views(3), views(1)])


@pytest.mark.parametrize("kind", [DeepseekOcr2Model, Step3p7Model])
def test_crops_of_each_view(runs_like, kind):
    """Other numbers of images, of crops, and none."""
    runs_like(Crops(kind), views(2, 3, 1), [views(3, 2, 0, 4), views(4, 0, 1, 1, 5), views(1, 2)])
