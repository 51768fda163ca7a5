"""`unbind` along an axis whose size is data: items without that axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def _unbind(tensor: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """One `select` for each item; their number is asked for, and with that the sample's."""
    return tuple(tensor.select(dim, item) for item in range(int(tensor.shape[dim])))


def with_rows(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    return {**table, torch.ops.aten.unbind.int: _unbind}


WORKAROUND = Workaround(
    reason="`for row in tensor`, where the number of rows is an expression of data (tokens of all images together): the rows keep "
    "the axis in the graph, and ExecuTorch's `select` refuses the memory that is planned for them (GlmImage).",
    upstream="none: torch._refs.unbind squeezes pieces of `tensor_split`, whose sizes of such an axis are not known to be 1.",
    targets=("torch._decomp:decomposition_table",),
    apply=with_rows,
)
