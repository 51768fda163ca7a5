from __future__ import annotations

import pytest
import torch
from transformers import CLIPTextConfig, OmDetTurboConfig
from transformers.models.omdet_turbo.modeling_omdet_turbo import (
    OmDetTurboForObjectDetection,
    OmDetTurboLanguageBackbone,
    OmDetTurboLRUCache,
)

ID = "trace.patches.python.language_cache"


class Language(OmDetTurboForObjectDetection):
    """The part of the model that embeds classes and tasks; its caches start empty at each call."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        torch.manual_seed(0)
        text = CLIPTextConfig(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            eos_token_id=49,
        )
        config = OmDetTurboConfig(text_config=text, text_projection_in_dim=16, text_projection_out_dim=8)
        self.language_backbone = OmDetTurboLanguageBackbone(config)
        torch.nn.init.normal_(self.language_backbone.text_projection)

    def forward(
        self, classes_input_ids, classes_attention_mask, tasks_input_ids, tasks_attention_mask, classes_structure
    ):
        self.language_cache_class, self.language_cache_prompt = OmDetTurboLRUCache(9), OmDetTurboLRUCache(9)
        return self.get_language_embedding(
            classes_input_ids, classes_attention_mask, tasks_input_ids, tasks_attention_mask, classes_structure
        )


def inputs(structure: list[int], length: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(length)
    classes, images = sum(structure), len(structure)
    tokens = {
        "classes_input_ids": torch.randint(1, 49, (classes, length), generator=generator),
        "classes_attention_mask": torch.ones(classes, length, dtype=torch.int64),
        "tasks_input_ids": torch.randint(1, 49, (images, length), generator=generator),
        "tasks_attention_mask": torch.ones(images, length, dtype=torch.int64),
    }
    return {**tokens, "classes_structure": torch.tensor(structure)}


@pytest.mark.xfail(strict=True, reason="the keys of the cache are values")
def test_needed(runs_like):
    runs_like(Language().eval(), inputs([3, 2], 6), [inputs([1, 4, 2], 9)], without=[ID])


def test_works(runs_like):
    runs_like(Language().eval(), inputs([3, 2], 6), [inputs([1, 4, 2], 9), inputs([2, 2, 2], 5)])
