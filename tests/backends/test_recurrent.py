"""Recurrent layers of every kind, over any number of steps and any batch, on every backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import transformers_exporters as te

LAYERS: dict[str, tuple[type[torch.nn.RNNBase], dict[str, Any]]] = {
    "lstm": (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "lstm batch first": (torch.nn.LSTM, {"batch_first": True, "bias": False}),
    "gru": (torch.nn.GRU, {"num_layers": 2, "batch_first": True}),
    "gru both ways": (torch.nn.GRU, {"bias": False, "bidirectional": True}),
    "tanh": (torch.nn.RNN, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "relu": (torch.nn.RNN, {"nonlinearity": "relu", "bias": False}),
}
PROJECTED = {"proj_size": 3, "batch_first": True, "bidirectional": True}


class Recurrent(torch.nn.Module):
    def __init__(self, kind: type[torch.nn.RNNBase], options: dict[str, Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = kind(6, 8, **options)

    def forward(self, hidden_states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """float32 [batch, length, 6] -> the outputs and the last states."""
        given = hidden_states if self.layer.batch_first else hidden_states.transpose(0, 1)
        outputs, states = self.layer(given)
        return outputs, *(states if isinstance(states, tuple) else (states,))


def check(model: Recurrent, format: str, directory: Path) -> None:
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    exporter = te.AutoHfExporter.from_config(config)
    sample = {"hidden_states": torch.randn(2, 11, 6)}
    exporter.export_model(model, sample, config=config).save_pretrained(directory)
    loaded = te.ExportedModel.from_pretrained(directory, trust_remote_code=True)
    for batch, length in ((2, 11), (3, 7), (1, 1), (5, 40), (2, 11)):
        hidden_states = torch.randn(batch, length, 6)
        torch.testing.assert_close(tuple(loaded(hidden_states=hidden_states)), model(hidden_states))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_any_sizes(format: str, name: str, tmp_path: Path) -> None:
    check(Recurrent(*LAYERS[name]).eval(), format, tmp_path / "a")


@pytest.mark.parametrize("format", ["dynamo", "executorch"])
def test_projections(format: str, tmp_path: Path) -> None:
    check(Recurrent(torch.nn.LSTM, PROJECTED).eval(), format, tmp_path / "a")


@pytest.mark.parametrize("format", ["onnx", "openvino"])
def test_projections_are_refused_where_the_engine_has_none(format: str, tmp_path: Path) -> None:
    with pytest.raises(te.LoweringError, match="projections"):
        check(Recurrent(torch.nn.LSTM, PROJECTED).eval(), format, tmp_path / "a")
