from __future__ import annotations

import pytest
import torch
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import VisionAttention

from transformers_exporters import DynamoConfig, DynamoExporter

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


class Checked(torch.nn.Module):
    def forward(self, x, mask):
        """x float [batch, frames, 4], mask [batch, frames] -> the frames that are meant, float [kept, 4]."""
        lengths = mask.sum(-1)
        kept = x[mask.bool()]
        if kept.shape[0] != sum(lengths.tolist()):
            raise ValueError("as many frames as the lengths say")
        return kept * 2


def test_lengths_that_are_only_added_up():
    """Qwen2.5-Omni's audio: the number of rows stays open."""
    traced = {"x": torch.randn(3, 6, 4), "mask": (torch.arange(6) < torch.tensor([[2], [6], [3]])).long()}
    exported = DynamoExporter().export_model(Checked(), traced, DynamoConfig(dynamic=True))
    for batch, frames in ((3, 6), (1, 4), (5, 9)):
        mask = (torch.arange(frames) < torch.randint(2, frames, (batch, 1))).long()
        inputs = {"x": torch.randn(batch, frames, 4), "mask": mask}
        torch.testing.assert_close(exported(**inputs), Checked()(**inputs))
