"""How a traced tensor lies in memory."""

from __future__ import annotations

from itertools import pairwise

import torch

_ANY = 64


def is_row_major(value: torch.Tensor) -> bool:
    """Whether strides never grow from left to right. Axes of size 1 do not count; symbols count as traced.

    A size that is data counts as `_ANY`: its products with others are ordered as those of any number above 1.
    """
    strides = [
        _number(stride) if isinstance(stride, torch.SymInt) else stride
        for size, stride in zip(value.shape, value.stride(), strict=True)
        if not (isinstance(size, int) and size == 1)
    ]
    return all(left >= right for left, right in pairwise(strides))


def _number(size: torch.SymInt) -> int:
    known = size.node.shape_env.backed_var_to_val
    expression = size.node.expr
    return int(expression.xreplace({symbol: known.get(symbol, _ANY) for symbol in expression.free_symbols}))
