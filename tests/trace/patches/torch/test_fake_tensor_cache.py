from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from transformers_exporters import DynamoConfig, DynamoExporter

ID = "trace.patches.torch.fake_tensor_cache"


class Patches(torch.nn.Module):
    """Rows of all images: float [batch, 3, height, width] -> float [batch * height * width, 3]."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        rows = pixel_values.permute(0, 2, 3, 1).flatten(0, 2)
        for _ in range(4):
            rows = rows * 2 + 1
        return rows


def images(batch: int, height: int, width: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(batch, 3, height, width)}


def rebuilt(monkeypatch, without: list[str]) -> int:
    """How many results the trace rebuilds from its cache."""
    calls = []
    original = FakeTensorMode._get_output_tensor_from_cache_entry
    monkeypatch.setattr(
        FakeTensorMode,
        "_get_output_tensor_from_cache_entry",
        lambda *args: calls.append(args) or original(*args),
    )
    config = DynamoConfig(dynamic=True, disabled_workarounds=without)
    DynamoExporter().export(Patches(), images(3, 20, 24), config)
    return len(calls)


@pytest.mark.xfail(strict=True, reason="torch rebuilds each result that it stores or finds")
def test_needed(monkeypatch):
    assert rebuilt(monkeypatch, [ID]) <= 6  # those of plain sizes


def test_works(monkeypatch, runs_like):
    assert rebuilt(monkeypatch, []) <= 6  # those of plain sizes
    runs_like(Patches(), images(3, 20, 24), [images(2, 7, 9), images(1, 30, 5)])
