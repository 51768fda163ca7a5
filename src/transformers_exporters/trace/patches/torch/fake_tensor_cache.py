"""Shapes of tensors whose sizes are expressions are computed anew each time, which is faster than torch's cache of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.utils._pytree as pytree
from torch import SymInt, Tensor

from ....workarounds import Workaround


def uncached(original: Callable[..., Any]) -> Callable[..., Any]:
    """`FakeTensorMode._cached_dispatch_impl`, which computes straight away where a size is more than a symbol.

    What the cache holds is rebuilt at each use, and once more when it is stored: strides are laid out and compared, in
    symbols. That costs more than the operation's own shapes as soon as sizes are sums and products (an image's patches).
    Where they are plain symbols (text), the cache pays in deep models.
    """

    @functools.wraps(original)
    def dispatch(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(_has_expression(leaf) for leaf in pytree.arg_tree_leaves(*args, **kwargs)):
            return self._dispatch_impl(func, types, args, kwargs)
        return original(self, func, types, args, kwargs)

    return dispatch


def _has_expression(leaf: Any) -> bool:
    sizes = leaf.shape if isinstance(leaf, Tensor) else (leaf,)
    return any(isinstance(size, SymInt) and not size.node._expr.is_Atom for size in sizes)


WORKAROUND = Workaround(
    reason="torch's cache of shapes takes 40% of a trace whose sizes are expressions (Grounding DINO: 56 s against 33 s, "
    "Swin: 4.4 s against 2.5 s).",
    upstream="none: no issue is known to us; torch 2.13, `_get_output_tensor_from_cache_entry` of torch/_subclasses/fake_tensor.py",
    targets=("torch._subclasses.fake_tensor:FakeTensorMode._cached_dispatch_impl",),
    apply=uncached,
)
