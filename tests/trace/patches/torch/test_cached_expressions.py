from __future__ import annotations

import pytest
import sympy
import torch

from transformers_exporters import DynamoConfig, DynamoExporter

ID = "trace.patches.torch.cached_expressions"


class Halved(torch.nn.Module):
    """Convolutions of stride two, each of which makes the size a longer expression."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Conv2d(3, 3, 3, stride=2, padding=1) for _ in range(3)))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.layers(pixel_values).flatten(2).transpose(1, 2)


def images(batch: int, height: int, width: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(batch, 3, height, width)}


def walks(monkeypatch, without: list[str]) -> int:
    """How many expressions the trace walks through to see whether they are numbers."""
    count = 0
    original = sympy.Expr.is_number.fget

    def is_number(self):
        nonlocal count
        count += 1
        return original(self)

    with monkeypatch.context() as patched:
        patched.setattr(sympy.Expr, "is_number", property(is_number))
        config = DynamoConfig(dynamic=True, disabled_workarounds=without)
        DynamoExporter().export(Halved().eval(), images(3, 40, 72), config)
    return count


@pytest.mark.xfail(strict=True, reason="torch walks through an expression each time that it is used")
def test_needed(monkeypatch):
    assert walks(monkeypatch, [ID]) <= 3000  # 6564


def test_works(monkeypatch, runs_like):
    assert walks(monkeypatch, []) <= 3000  # 1499
    runs_like(Halved(), images(3, 40, 72), [images(2, 33, 50), images(1, 96, 64)])
