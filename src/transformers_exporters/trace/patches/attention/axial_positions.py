"""Positions embedded by axes (Reformer): one table look-up, instead of one a row and a cut by the largest position."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


def look_up(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def forward(self: Any, position_ids: Tensor) -> Tensor:
        shape = tuple(self.axial_pos_shape)
        if self.training or math.prod(shape) < position_ids.shape[1]:
            return original(self, position_ids)
        table = torch.cat([weight.expand(*shape, weight.shape[-1]) for weight in self.weights], dim=-1)
        return F.embedding(position_ids, table.flatten(0, len(shape) - 1))

    return forward


WORKAROUND = Workaround(
    reason="Reformer looks up positions row by row, in as many columns as the largest position asks for: the batch is baked in.",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:AxialPositionEmbeddings.forward",),
    apply=look_up,
)
