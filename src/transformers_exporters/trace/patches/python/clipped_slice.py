"""`x[-10:]` and `x[:10]` on a dynamic axis: clip symbolically instead of guarding on which side of 10 the axis is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ....workarounds import Workaround


def override(original: Callable[..., Any]) -> Callable[..., Any]:
    """The hook through which `torch.export` sees every indexing of a tensor.

    Not `torch.Tensor.__getitem__` itself: setting and deleting it leaves every tensor of the process looking like a
    sequence to C code, and `torch.tensor([a_scalar_tensor])` fails from then on (CPython 3.11, torch 2.13).
    """

    @functools.wraps(original)
    def clipped(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if getattr(func, "__name__", "") == "__getitem__" and len(args) == 2 and isinstance(args[0], Tensor):
            x, index = args
            if any(isinstance(size, SymInt) for size in x.shape):
                args = (x, _clip(x, index))
        return original(self, func, args, kwargs)

    return clipped


def _clip(x: Tensor, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(p, slice) for p in parts) or any(isinstance(p, Tensor | list) for p in parts):
        return index
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    dim, clipped = 0, []
    for part in parts:
        if part is Ellipsis:
            dim += x.dim() - taken
        elif isinstance(part, slice):
            clipped.append(_clip_slice(x.shape[dim], part))
            dim += 1
            continue
        elif part is not None:
            dim += 1
        clipped.append(part)
    return tuple(clipped)


def _clip_slice(size: int | SymInt, part: slice) -> slice:
    if not isinstance(size, SymInt) or part.step not in (None, 1):
        return part
    return slice(_clip_bound(size, part.start), _clip_bound(size, part.stop))


def _clip_bound(size: SymInt, bound: Any) -> Any:
    if type(bound) is not int or statically_known_true(size >= abs(bound)):
        return bound
    return torch.sym_max(size + bound, 0) if bound < 0 else torch.sym_min(size, bound)


WORKAROUND = Workaround(
    reason="A slice with a fixed bound on a dynamic axis guards on whether the axis is longer than the bound, which caps "
    "the axis at the bound (XLNet memories: 9 tokens; windows and truncations of any model).",
    upstream="none: a guard is how torch.export answers; no issue is known to us",
    targets=("torch._export.non_strict_utils:_NonStrictTorchFunctionHandler._override",),
    apply=override,
)
