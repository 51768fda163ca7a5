"""A loop over the experts that got a token: over all experts and all tokens, each weighted by what the router gave."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ....workarounds import Workaround

_LOOP = re.compile(r"for \w+ in (expert_)?hit:")


class _Row(list[int]):
    """A row of the result of `nonzero`: an index of one axis, as a number where code asks for one."""

    def item(self) -> int:
        return self[0]


class _OneExpert(TorchFunctionMode):
    """While held, expert number `expert` is the only one that is hit, by every one of `tokens` tokens.

    Answers the two questions of the loop that are about values: which experts are hit (`nonzero`), and by which tokens
    (`where` with a condition alone).
    """

    def __init__(self, expert: int, tokens: Any, device: torch.device) -> None:
        super().__init__()
        self._expert, self._tokens, self._device = expert, tokens, device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.nonzero, torch.nonzero):
            return [_Row([self._expert])]
        if func is torch.where and len(args) == 1 and not kwargs:
            every = torch.arange(self._tokens, device=self._device)
            return torch.zeros_like(every), every
        return func(*args, **(kwargs or {}))


def expert_loop(original: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of a module of experts, `(hidden_states, chosen, weights)`, if it loops over the experts that are hit.

    `chosen`: int64 [tokens, k], or [tokens, k, experts] of 0 and 1; `weights`: [tokens, k]. The model's own loop runs once
    for each expert, on all tokens, with the sum of the weights by which a token chose it: zero for the tokens that did
    not. A module that transformers can switch to another implementation is left alone.
    """
    names = list(inspect.signature(original).parameters)
    if hasattr(original, "__wrapped__") or len(names) != 4:
        return original
    source = inspect.getsource(original)
    if not _LOOP.search(source):
        return original
    counted = re.search(r"num_classes=self\.(\w+)", source)
    count = counted[1] if counted else "num_experts"

    @functools.wraps(original)
    def forward(self: Any, hidden_states: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        total = None
        for expert in range(getattr(self, count)):
            picked = chosen[..., expert] if chosen.dim() == 3 else chosen == expert
            share = (picked * weights).sum(-1, keepdim=True)
            with _OneExpert(expert, chosen.shape[0], chosen.device):
                part = original(self, hidden_states, chosen[:, :1], share)
            total = part if total is None else total + part
        assert total is not None
        return total

    return forward


WORKAROUND = Workaround(
    reason="The experts that got a token, and the tokens of each, are data: a trace cannot loop over them where transformers "
    "has no other implementation of the module (DBRX, Switch Transformers, NLLB-MoE, LongCat-Flash).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*Experts.forward",),
    apply=expert_loop,
)
