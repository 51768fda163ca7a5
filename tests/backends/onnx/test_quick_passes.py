"""The converter's passes work on the nodes that need it, and on nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.export import ExportedProgram

import transformers_exporters as te


class Mixed(torch.nn.Module):
    """Layers alike, ops to take apart, writes into what the graph made, and whole numbers among others."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.GroupNorm(2, 8) for _ in range(3))

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """hidden_states float32 [batch, length, 8], mask int64 [batch, length]."""
        x = hidden_states.mT
        for norm in self.norms:
            x = torch.nn.functional.mish(norm(x)) * (1 - mask[:, None] * 2) + mask[:, None] / 3
        x = x.mT.reshape(x.shape[0], -1, 4) + torch.arange(4)
        x[:, :1] += True
        return x, mask / mask.sum(), (mask > 0) * 2, mask.T


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"hidden_states": torch.randn(batch, length, 8), "mask": torch.randint(1, 4, (batch, length))}


def test_no_graph_is_traced_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ExportedProgram, "run_decompositions", lambda *_: pytest.fail("the graph is traced again"))
    torch.manual_seed(0)
    model = Mixed().eval()
    te.OnnxExporter().export_model(model, inputs(2, 5), te.OnnxConfig(dynamic=True)).save_pretrained(tmp_path / "a")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "a")
    for given in (inputs(2, 5), inputs(3, 1), inputs(1, 40)):
        torch.testing.assert_close(tuple(loaded(**given)), model(**given))


class Cached(torch.nn.Module):
    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """x float32 [batch, 1, 8], cache float32 [batch, 6, 8], which is written into."""
        cache.index_copy_(1, torch.tensor([2]), x)
        return torch.nn.functional.mish(cache) * (cache > 0)


def test_a_graph_that_writes_into_an_input(tmp_path: Path) -> None:
    config = te.OnnxConfig(dynamic=False)
    sample = {"x": torch.randn(2, 1, 8), "cache": torch.zeros(2, 6, 8)}
    te.OnnxExporter().export_model(Cached().eval(), sample, config).save_pretrained(tmp_path / "a")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "a")
    given = {"x": torch.randn(2, 1, 8), "cache": torch.randn(2, 6, 8)}
    wanted = Cached()(given["x"], given["cache"].clone())
    torch.testing.assert_close(loaded(**given), wanted)
