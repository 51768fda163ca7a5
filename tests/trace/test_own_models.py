"""A model that is not transformers' own gets the same patches: its modules are modelling code, too."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

import transformers_exporters as te

LAYERS = """
def half(length):
    return int(length * 0.5)
"""
MODEL = """
import torch
from . import layers

class Halving(torch.nn.Module):
    def forward(self, values):
        count = len(values) + layers.half(values.shape[1])
        return values.sum() + torch.arange(count)
"""


def test_sizes_in_the_code_of_a_package_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "my_package_of_models"
    package.mkdir()
    for name, text in {"__init__": "", "layers": LAYERS, "network": MODEL}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    model = importlib.import_module("my_package_of_models.network").Halving().eval()
    loaded = te.DynamoExporter().export_model(model, {"values": torch.randn(1, 8)}, te.DynamoConfig(dynamic=True))
    for rows, length in ((1, 8), (2, 13), (5, 40)):
        values = torch.randn(rows, length)
        torch.testing.assert_close(loaded(values=values), model(values))
    layers = sys.modules["my_package_of_models.layers"]
    assert "int" not in vars(layers)


class Counted(torch.nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        counts = (values > 0).sum(0).cpu().numpy()
        return values * int(counts.max())


def test_code_that_leaves_torch_is_named_with_its_line() -> None:
    with pytest.raises(te.TraceError, match=r"for NumPy \(at .*counts = .*\).*torch's functions"):
        te.DynamoExporter().export(Counted(), {"values": torch.randn(3, 8)}, te.DynamoConfig(dynamic=True))


class Undecided(torch.nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if values.sum() > 0:
            return torch.from_numpy(values.numpy())
        return values


def test_what_stops_the_trace_that_knows_the_values_is_named_too() -> None:
    with pytest.raises(te.TraceError, match=r"at .*if values.sum.*values known, it stops as well.*from_numpy\(values"):
        te.DynamoExporter().export_model(Undecided().eval(), {"values": torch.ones(2, 3)}, te.DynamoConfig())
