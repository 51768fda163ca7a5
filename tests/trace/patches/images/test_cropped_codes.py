from __future__ import annotations

import pytest
import torch
from transformers import Emu3Config, Emu3Model, Emu3TextConfig, Emu3VQVAEConfig

ID = "trace.patches.images.cropped_codes"


class Features(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        text = Emu3TextConfig(
            vocab_size=64,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            pad_token_id=0,
        )
        images = Emu3VQVAEConfig(
            codebook_size=16,
            embed_dim=4,
            latent_channels=4,
            base_channels=32,
            channel_multiplier=[1, 1],
            num_res_blocks=1,
            hidden_size=32,
            attn_resolutions=[],
        )
        names = {f"<|visual token {code:06d}|>": code + 10 for code in range(16)}
        names |= {"<image>": 1, "<|extra_200|>": 2}
        self.model = Emu3Model(Emu3Config(vq_config=images, text_config=text, vocabulary_map=names)).eval()
        self.model.vocabulary_mapping.img2bpe_mapping_tensor  # noqa: B018 - the first use makes it

    def forward(self, pixel_values, image_sizes):
        return torch.cat(self.model.get_image_features(pixel_values, image_sizes, return_dict=True).pooler_output)


def inputs(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(len(sizes))
    height, width = (max(size[i] for size in sizes) for i in (0, 1))
    return {"pixel_values": torch.randn(len(sizes), 3, height, width, generator=g), "image_sizes": torch.tensor(sizes)}


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_needed(runs_like):
    runs_like(Features(), inputs((12, 16), (20, 8)), [inputs((8, 8), (12, 16), (4, 20))], without=[ID])


def test_works(runs_like):
    others = [inputs((8, 8), (12, 16), (4, 20)), inputs((14, 18)), inputs((16, 12), (16, 12))]
    runs_like(Features(), inputs((12, 16), (20, 8)), others)
