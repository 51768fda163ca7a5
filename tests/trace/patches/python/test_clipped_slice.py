from __future__ import annotations

import pytest
import torch

ID = "trace.patches.python.clipped_slice"


class Window(torch.nn.Module):
    def forward(self, x):
        return x[:, -10:], x[..., :12], x[1:, None, -10:-1], x[:, :5] * 2


def inputs(length: int) -> dict[str, torch.Tensor]:
    return {"x": torch.arange(3.0 * length).reshape(3, length)}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="a guard keeps the axis below the bound of the slice")
def test_needed(runs_like):
    runs_like(Window(), inputs(7), [inputs(15)], without=[ID])


def test_works(runs_like):
    """On both sides of every bound."""
    runs_like(Window(), inputs(7), [inputs(n) for n in (5, 9, 10, 11, 12, 13, 40)])


def test_leaves_indexing_as_it_was(runs_like):
    """A patch of `torch.Tensor.__getitem__` would make this fail for the rest of the process."""
    runs_like(Window(), inputs(7), [])
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
