from __future__ import annotations

import pytest
import torch
from transformers.models.pixtral.configuration_pixtral import PixtralVisionConfig
from transformers.models.pixtral.modeling_pixtral import PixtralVisionModel

ID = "trace.patches.images.cropped_images"


def model(implementation: str = "sdpa") -> PixtralVisionModel:
    torch.manual_seed(0)
    config = PixtralVisionConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, patch_size=4, image_size=32
    )
    config._attn_implementation = implementation
    return PixtralVisionModel(config).eval()


def inputs(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(sizes))
    height, width = (max(size[i] for size in sizes) for i in (0, 1))
    return {"pixel_values": torch.randn(len(sizes), 3, height, width, generator=g), "image_sizes": torch.tensor(sizes)}


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_needed(runs_like):
    runs_like(model(), inputs((12, 16), (20, 8)), [inputs((8, 8), (12, 16), (4, 20))], without=[ID])


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_works(runs_like, implementation):
    """Other numbers of images, of other and of unequal sizes; patches at the border that are cut off are left out."""
    others = [inputs((8, 8), (12, 16), (4, 20)), inputs((13, 18)), inputs((4, 4), (4, 4))]
    runs_like(model(implementation), inputs((12, 16), (20, 8)), others)


def test_images_of_one_size(runs_like):
    """Without sizes every image is taken whole."""
    others = [{"pixel_values": torch.randn(3, 3, 12, 16)}, {"pixel_values": torch.randn(1, 3, 8, 8)}]
    runs_like(model(), {"pixel_values": torch.randn(2, 3, 20, 24)}, others)


def test_captured_outputs(runs_like):
    """The decorators of forward stay: what they capture is an output."""
    captured = model()
    captured.config.output_hidden_states = True
    runs_like(captured, inputs((12, 16), (20, 8)), [inputs((8, 8), (12, 16), (4, 20))])
