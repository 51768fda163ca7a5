"""Scales too small for XNNPACK, which takes numbers below 1.2e-38 for 0."""

from __future__ import annotations

from typing import Any

import torch


class IntegerOnly(torch.nn.Module):
    """Divides by a product of scales, as each step of I-BERT does."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Buffer(torch.tensor([1.1e-13, 1.2e-13, 1.3e-13, 1.4e-13]))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """float32 [batch, sequence, 4]."""
        square = self.scale * self.scale * 0.5
        small = square * self.scale / 2
        return (hidden_states * 1e-10) / small * 1e-29


def test_what_is_divided_by_a_tiny_scale_stays_finite(export: Any) -> None:
    exported = export(IntegerOnly(), {"hidden_states": torch.randn(2, 5, 4)})
    hidden = torch.randn(3, 9, 4)
    assert torch.isfinite(exported(hidden_states=hidden)).all()
    assert exported.error(hidden_states=hidden) < 1e-5
    assert "mul.Tensor" in exported.notes["undelegated_ops"]


class ShiftedNorm(torch.nn.Module):
    """Gemma's norm, whose weight is one more than the parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """float32 [batch, sequence, 4]."""
        normed = hidden_states * torch.rsqrt(hidden_states.pow(2).mean(-1, keepdim=True) + 1e-6)
        return normed * (1.0 + self.weight)


def test_a_weight_that_is_no_scale_stays_in_xnnpack(export: Any) -> None:
    exported = export(ShiftedNorm(), {"hidden_states": torch.randn(2, 5, 4)})
    assert "mul.Tensor" not in exported.notes["undelegated_ops"]
    assert exported.error(hidden_states=torch.randn(3, 9, 4)) < 1e-5
