from __future__ import annotations

import pytest
import torch
from transformers import ViltConfig
from transformers.models.vilt.modeling_vilt import ViltModel

ID = "trace.patches.images.vilt_patches"


class Pooled(torch.nn.Module):
    """The pooled output, which does not depend on the order of the patches; that of the others is drawn."""

    def __init__(self, most: int = -1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = ViltModel(
            ViltConfig(
                hidden_size=16,
                intermediate_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                vocab_size=20,
                image_size=24,
                patch_size=4,
                max_image_length=most,
            )
        ).eval()
        torch.nn.init.normal_(self.model.embeddings.position_embeddings)
        torch.nn.init.normal_(self.model.embeddings.cls_token)

    def forward(self, input_ids, attention_mask, pixel_values, pixel_mask=None):
        output = self.model(input_ids, attention_mask, None, pixel_values, pixel_mask)
        return output.pooler_output, output.last_hidden_state[:, : input_ids.shape[1]], output.last_hidden_state.sum(1)


def inputs(*sizes: tuple[int, int], masked: bool = True) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(sizes))
    height, width = (max(size[i] for size in sizes) for i in (0, 1))
    mask = torch.zeros(len(sizes), height, width, dtype=torch.int64)
    for row, (high, wide) in enumerate(sizes):
        mask[row, :high, :wide] = 1
    ids = torch.randint(20, (len(sizes), 5), generator=g)
    images = {"pixel_values": torch.randn(len(sizes), 3, height, width, generator=g)}
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        **images,
        **({"pixel_mask": mask} if masked else {}),
    }


@pytest.mark.xfail(strict=True, reason="draws patches image by image")
def test_needed(runs_like):
    runs_like(Pooled(), inputs((12, 16), (24, 8)), [inputs((8, 8), (12, 16), (4, 20))], without=[ID])


def test_works(runs_like):
    """Other numbers of images, of other and of unequal sizes."""
    others = [inputs((8, 8), (8, 8)), inputs((12, 28)), inputs((20, 24), (20, 24), (20, 24))]
    runs_like(Pooled(), inputs((12, 16), (12, 16)), others)


def test_whole_images(runs_like):
    traced = inputs((12, 16), (12, 16), masked=False)
    runs_like(Pooled(most=40), traced, [inputs((8, 8), (8, 8), (8, 8), masked=False)])


def test_images_of_different_sizes(runs_like):
    """Which padding fills a smaller image is drawn too: only what the mask lets through is compared."""

    class Seen(Pooled):
        def forward(self, input_ids, attention_mask, pixel_values, pixel_mask):
            return super().forward(input_ids, attention_mask, pixel_values, pixel_mask)[:2]

    runs_like(Seen(), inputs((12, 16), (24, 8)), [inputs((8, 8), (12, 16), (4, 20)), inputs((16, 4), (4, 16))])
