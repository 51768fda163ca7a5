"""The places of what is not zero."""

from __future__ import annotations

from typing import Any

import pytest
import torch

FIX = "backends.executorch.fixes.nonzero_rows"


class Places(torch.nn.Module):
    def forward(self, x: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """x [6, 2], m bool [n, 6]."""
        places, (rows, columns) = torch.nonzero(m), torch.where(m)
        (line,) = torch.where(m.any(1))
        return places, x[places[:, 1]] * 2, rows + columns, line + 1, torch.argwhere(m) * 2


def case(n: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(n)
    return {"x": torch.randn(6, 2), "m": torch.randn(n, 6) > 0}


def test_works(export: Any) -> None:
    exported = export(Places(), case(3))
    for n in (1, 3, 7):
        assert exported.error(**case(n)) == 0


@pytest.mark.xfail(strict=True, reason="the rows are read as columns")
def test_needed(export: Any) -> None:
    exported = export(Places(), case(3), disabled_workarounds=(FIX,))
    assert exported.error(**case(3)) == 0
