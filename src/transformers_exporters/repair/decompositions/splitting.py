"""Pieces of an axis of any size: torch's own rule asks which of them are one longer, and keeps the traced answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


def split_sections(x: Tensor, sections: int, dim: int = 0) -> list[Tensor]:
    """`sections` pieces, the first `size % sections` of them one longer than the others."""
    least, longer = x.shape[dim] // sections, x.shape[dim] % sections
    return _between(x, [n * least + torch.sym_min(longer, n) for n in range(1, sections)], dim)


def split_at(x: Tensor, indices: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Pieces that end before each index, and the rest."""
    size = x.shape[dim]
    ends = [torch.sym_max(size + end, 0) if end < 0 else torch.sym_min(end, size) for end in indices]
    return _between(x, ends, dim)


def _between(x: Tensor, ends: Sequence[int], dim: int) -> list[Tensor]:
    places = [0, *ends, x.shape[dim]]
    return [torch.ops.aten.slice.Tensor(x, dim, start, end) for start, end in pairwise(places)]


RULES = {"aten.tensor_split.sections": split_sections, "aten.tensor_split.indices": split_at}
