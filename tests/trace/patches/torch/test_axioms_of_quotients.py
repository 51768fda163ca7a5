from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from transformers_exporters import DynamoConfig, DynamoExporter

ID = "trace.patches.torch.axioms_of_quotients"


class Patched(torch.nn.Module):
    """Cuts an image into patches of two sizes, and puts it together again."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = pixel_values.shape
        for size in (2, 3):
            rows, columns = height // size, width // size
            patches = pixel_values.reshape(batch * channels * rows, size, columns, size).transpose(1, 2)
            patches = patches.reshape(batch, channels, rows * columns, size**2).transpose(1, 3).exp()
            whole = patches.transpose(1, 3).reshape(batch * channels * rows, columns, size, size).transpose(1, 2)
            pixel_values = whole.reshape(batch, channels, rows * size, columns * size)
        return pixel_values


def images(batch: int, height: int, width: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(batch, 3, height, width)}


def simplified(monkeypatch, without: list[str]) -> int:
    """How many expressions the trace simplifies."""
    count = 0
    original = ShapeEnv.simplify

    def simplify(self, *args, **kwargs):
        nonlocal count
        count += 1
        return original(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(ShapeEnv, "simplify", simplify)
        config = DynamoConfig(dynamic=True, disabled_workarounds=without)
        DynamoExporter().export(Patched().eval(), images(3, 24, 36), config)
    return count


@pytest.mark.xfail(
    strict=True, reason="torch simplifies all that it knows again with each size that it finds to be a multiple"
)
def test_needed(monkeypatch):
    assert simplified(monkeypatch, [ID]) <= 2500  # 5320


def test_works(monkeypatch, runs_like):
    assert simplified(monkeypatch, []) <= 2500  # 1832
    runs_like(Patched(), images(3, 24, 36), [images(2, 12, 48), images(1, 30, 6)])
