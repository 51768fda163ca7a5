from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.repeated_tensors"


class Repeated(torch.nn.Module):
    def forward(self, x):
        """x float [batch, channels]: its first row, in the place of every row."""
        row, count = x[:1] * 2, x.shape[0]
        many = [torch.concat([row] * count, dim=0), torch.cat([row] * count), torch.cat([row.T] * count, 1).T]
        return *many, torch.stack([row[0]] * count), torch.stack([row[0]] * count, dim=-1), 2 * count


def inputs(batch: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, 4)}


@pytest.mark.xfail(strict=True, reason="a list times a size fixes the size")
def test_needed(runs_like):
    runs_like(Repeated(), inputs(3), [inputs(5)], without=[ID])


def test_works(runs_like):
    runs_like(Repeated(), inputs(3), [inputs(5), inputs(1)])


def test_lists_of_other_things(runs_like):
    class Sizes(torch.nn.Module):
        def forward(self, x):
            return x * len([(1, 2)] * x.shape[0])

    runs_like(Sizes(), inputs(3), [inputs(3)])
