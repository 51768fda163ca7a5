from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers.models.lighton_ocr.modeling_lighton_ocr import LightOnOcrPatchMerger
from transformers.models.minicpmv4_6.modeling_minicpmv4_6 import MiniCPMV4_6Merger
from transformers.models.mistral3.modeling_mistral3 import Mistral3PatchMerger

ID = "trace.patches.images.patch_merger"


def merger(kind: type[torch.nn.Module]) -> torch.nn.Module:
    torch.manual_seed(0)
    vision = SimpleNamespace(hidden_size=6, patch_size=4)
    return kind(SimpleNamespace(vision_config=vision, spatial_merge_size=2)).eval()


def inputs(*grid: tuple[int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(grid))
    patches = sum(height * width for height, width in grid)
    return {"image_features": torch.randn(patches, 6, generator=g), "image_sizes": torch.tensor(grid) * 4}


@pytest.mark.xfail(strict=True, reason="the loop over images reads their sizes")
def test_needed(runs_like):
    runs_like(merger(Mistral3PatchMerger), inputs((4, 6), (2, 4)), [inputs((2, 2), (4, 4), (6, 2))], without=[ID])


@pytest.mark.parametrize("kind", [Mistral3PatchMerger, LightOnOcrPatchMerger])
def test_works(runs_like, kind):
    """Other numbers of images; an odd row or column of patches is dropped."""
    runs_like(merger(kind), inputs((4, 6), (2, 4)), [inputs((2, 2), (5, 4), (6, 3)), inputs((6, 4))])


class Rounds(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = SimpleNamespace(
            merge_kernel_size=(2, 2),
            merger_times=2,
            vision_config=SimpleNamespace(hidden_size=4),
            text_config=SimpleNamespace(hidden_size=6),
        )
        self.merger = MiniCPMV4_6Merger(config)

    def forward(self, hidden_states, target_sizes):
        return torch.cat(self.merger(hidden_states, target_sizes))


def packed(*grid: tuple[int, int]) -> dict[str, torch.Tensor]:
    patches = sum(height * width for height, width in grid)
    return {"hidden_states": torch.randn(1, patches, 4), "target_sizes": torch.tensor(grid, dtype=torch.int32)}


def test_rounds(runs_like):
    """Blocks of blocks, with a layer after each round (MiniCPM-V 4.6)."""
    runs_like(Rounds(), packed((4, 8), (8, 4)), [packed((4, 4), (12, 4), (4, 8)), packed((8, 8))])
