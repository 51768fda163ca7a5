"""`nn.LSTM`, `nn.GRU` and `nn.RNN` over a dynamic length: the shapes of their results without a loop over the steps.

For the backends whose engine has these layers as one operator; each lists `recurrent_shapes` among its own patches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import SymInt, Tensor

from ...workarounds import Workaround


def by_formula(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_rnn_helper`: what the layers' ops compute on tensors without values; the op itself stays whole in the graph."""

    @functools.wraps(original)
    def shapes(steps: Tensor, states: Sequence[Any], *rest: Any) -> tuple[Tensor, list[Any]]:
        if steps.dim() != 3 or not any(isinstance(size, SymInt) for size in steps.shape[:2]):
            return original(steps, states, *rest)
        *_, bidirectional, batch_first, _ = rest
        first: Tensor = states[0][0] if isinstance(states[0], tuple) else states[0]
        size = first.shape[-1] * (2 if bidirectional else 1)
        time_first = steps.transpose(0, 1) if batch_first else steps
        # Engines compute with time first: of a batch-first layer the result is a view.
        outputs = time_first.new_empty((*time_first.shape[:2], size))
        final = [tuple(map(torch.empty_like, s)) if isinstance(s, tuple) else torch.empty_like(s) for s in states]
        return outputs.transpose(0, 1) if batch_first else outputs, final

    return shapes


def recurrent_shapes() -> Workaround:
    """The patch, for a backend's folder of patches."""
    return Workaround(
        reason="torch finds the shape of an LSTM's results by unrolling its steps, which fixes their number (EnCodec, Parakeet "
        "and Nemotron transducers).",
        upstream="none: no issue is known to us (torch 2.13)",
        targets=("torch._decomp.decompositions:_rnn_helper",),
        apply=by_formula,
    )
