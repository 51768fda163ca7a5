"""`torch_int` of a dynamic size: the size itself, instead of the number that it had in the trace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ....workarounds import Workaround
from ...idioms.quotients import whole


def torch_int(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The helper by which models round the sizes that they resize to; numbers and tensors are treated as before."""

    @functools.wraps(original)
    def kept(x: Any) -> Any:
        return whole(x) if isinstance(x, torch.SymInt | torch.SymFloat) else original(x)

    return kept


WORKAROUND = Workaround(
    reason="int() of a symbolic size bakes in the traced one without a word where guards are deferred: position embeddings "
    "resized to one image size (DINOv2 with registers, ViT, DepthAnything and 57 other modules).",
    upstream="none: the helper knows torch.jit.trace only",
    targets=("transformers.models.*:torch_int",),
    apply=torch_int,
)
