"""Two inputs whose channels add up to what the layers have."""

from __future__ import annotations

import torch

import transformers_exporters as te


class TwoSpeakers(torch.nn.Module):
    """Codes of two speakers, joined: eight channels in all, each with an embedding of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = torch.nn.Parameter(torch.randn(8, 5))

    def forward(self, mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bcn,cd->bnd", torch.cat([mine, theirs], 1), self.embeddings)


def test_the_channels_are_fixed_and_the_rest_varies(tmp_path) -> None:
    torch.manual_seed(0)
    module = TwoSpeakers()
    inputs = {"mine": torch.randn(2, 3, 6), "theirs": torch.randn(2, 5, 6)}
    te.DynamoExporter().export_model(module, inputs, te.DynamoConfig(dynamic=True)).save_pretrained(tmp_path)
    loaded = te.ExportedModel.from_pretrained(tmp_path, trust_remote_code=True)
    mine, theirs = (tensor.shape for tensor in loaded["model"].spec.inputs)
    assert (mine[1], theirs[1]) == (3, 5)
    others = {"mine": torch.randn(4, 3, 9), "theirs": torch.randn(4, 5, 9)}
    torch.testing.assert_close(loaded(**others), module(**others).detach())
