"""Branches that only save work where there is nothing to do: the graph holds the way that does the work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from ....workarounds import Workaround
from ...idioms.calling import calling_place
from ...idioms.neutral import answer_at

_TORCH = str(Path(torch.__file__).parent)


def answered(original: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """`__bool__` of a tensor, or of a size or a comparison of sizes that is data."""

    @functools.wraps(original)
    def truth(self: Any) -> bool:
        if _is_data(self):
            file, line = calling_place()
            answer = None if _TORCH in file else answer_at(file, line)
            if answer is not None:
                return answer
        return original(self)

    return truth


def _is_data(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return isinstance(value, FakeTensor) or torch._is_functional_tensor(value)
    return has_free_unbacked_symbols(value)


WORKAROUND = Workaround(
    reason="`if token_idx.numel() == 0: continue` before `index_add_`, and `if mask.any():` around `x[mask] = ...`, ask for data "
    "although the work that they save changes nothing (loops over experts, replaced padding).",
    upstream="none: the branch is right in eager; only a trace keeps one side",
    targets=("torch:SymBool.__bool__", "torch:SymInt.__bool__", "torch:Tensor.__bool__"),
    apply=answered,
)
