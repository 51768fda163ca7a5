from __future__ import annotations

import pytest
import torch
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import VisionAttention

ID = "trace.patches.attention.packed_attention"


class Attention(torch.nn.Module):
    def __init__(self, implementation: str):
        super().__init__()
        torch.manual_seed(0)
        config = Qwen2VLVisionConfig(embed_dim=16, num_heads=2)
        config._attn_implementation = implementation
        self.attention = VisionAttention(config)

    def forward(self, x, lengths, cos, sin):
        ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        return self.attention(x, cu_seqlens=ends, position_embeddings=(cos, sin))


def inputs(*lengths: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(sum(lengths))
    angle = torch.randn(sum(lengths), 8, generator=g)
    return {
        "x": torch.randn(sum(lengths), 16, generator=g),
        "lengths": torch.tensor(lengths),
        "cos": angle.cos(),
        "sin": angle.sin(),
    }


@pytest.mark.xfail(strict=True, reason="a trace cannot split into pieces of lengths that are data")
def test_needed(runs_like):
    runs_like(Attention("sdpa"), inputs(4, 6, 3), [inputs(2, 5)], without=[ID])


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_works(runs_like, implementation):
    """Other numbers of segments, of other and of unequal lengths."""
    others = [inputs(2, 5), inputs(7, 1, 4, 9), inputs(5, 5, 5)]
    runs_like(Attention(implementation), inputs(4, 6, 3), others)
