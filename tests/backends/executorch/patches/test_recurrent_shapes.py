"""Recurrent layers over any number of steps, on ExecuTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import transformers_exporters as te

ID = "backends.executorch.patches.recurrent_shapes"


class Recurrent(torch.nn.Module):
    def __init__(self, bidirectional: bool, bias: bool) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 6, num_layers=2, batch_first=True, bidirectional=bidirectional, bias=bias)
        self.gru = torch.nn.GRU(12 if bidirectional else 6, 5, bidirectional=bidirectional, bias=bias)

    def forward(self, hidden_states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """float32 [batch, length, 4]."""
        steps, (hidden, cell) = self.lstm(hidden_states)
        steps, last = self.gru(steps.transpose(0, 1))
        return steps.transpose(0, 1), hidden, cell, last


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"hidden_states": torch.randn(batch, length, 4)}


def check(directory: Path, bidirectional: bool, bias: bool, disabled: tuple[str, ...] = ()) -> None:
    torch.manual_seed(0)
    model = Recurrent(bidirectional, bias).eval()
    config = te.ExecutorchConfig(dynamic=True, disabled_workarounds=disabled)
    te.ExecutorchExporter().export_model(model, inputs(2, 7), config).save_pretrained(directory)
    loaded = te.ExportedModel.from_pretrained(directory)
    for given in (inputs(2, 7), inputs(3, 1), inputs(1, 50)):
        torch.testing.assert_close(loaded(**given), model(**given))


@pytest.mark.xfail(strict=True, raises=te.InputError, reason="the number of steps is baked in")
def test_needed(tmp_path: Path) -> None:
    check(tmp_path / "a", False, True, (ID,))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_works(tmp_path: Path, bidirectional: bool, bias: bool) -> None:
    check(tmp_path / "a", bidirectional, bias)
