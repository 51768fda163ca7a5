from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

ID = "trace.patches.torch.pieces_padded"


class Chunks(torch.nn.Module):
    def forward(self, values, counts):
        pieces = values.split(counts.tolist())
        rows = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=-1.0)
        return torch.cat([torch.tanh(part) for part in rows.split(500)]), torch.nn.utils.rnn.pad_sequence(pieces)


def inputs(*counts: int) -> dict[str, torch.Tensor]:
    return {"values": torch.randn(sum(counts), 3), "counts": torch.tensor(counts)}


OTHERS = [inputs(4, 2, 1), inputs(2, 5), inputs(3, 1, 2, 6, 2)]


@pytest.mark.xfail(strict=True, reason="the number of pieces is baked in")
def test_needed(runs_like):
    runs_like(Chunks(), inputs(3, 1, 2), OTHERS, without=[ID])


def test_works(runs_like):
    runs_like(Chunks(), inputs(3, 1, 2), OTHERS)


class Left(torch.nn.Module):
    """Padded in front: only cut pieces can be."""

    def forward(self, values, counts):
        return pad_sequence(values.split(counts.tolist()), padding_side="left")


def test_padded_in_front(runs_like):
    runs_like(Left(), inputs(3, 1), [inputs(2, 5)])
