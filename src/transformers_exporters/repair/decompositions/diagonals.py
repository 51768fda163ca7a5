"""Diagonals, by picking from the flattened matrix."""

from __future__ import annotations

import torch
from torch import Tensor


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements whose places differ by `offset`; their axis comes last."""
    last = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = last.shape[-2:]
    down, right = max(-offset, 0), max(offset, 0)
    length = torch.sym_max(0, torch.sym_min(rows - down, columns - right))
    index = torch.arange(length, device=x.device)
    return last.flatten(-2)[..., (index + down) * columns + index + right]


RULES = {"aten.diagonal.default": diagonal}
