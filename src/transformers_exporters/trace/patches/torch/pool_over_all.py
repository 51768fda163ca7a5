"""`avg_pool2d(x, x.shape[2:])`, pooling over all there is: a mean or a largest value, whatever the sizes are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ....workarounds import Workaround

_RANKS = {"1d": 1, "2d": 2, "3d": 3}


def over_all(original: Callable[..., Any]) -> Callable[..., Any]:
    """One of torch's pooling functions; a kernel that is not as large as the input is left to it."""
    name = original.__name__
    axes = tuple(range(-_RANKS[name[-2:]], 0))

    @functools.wraps(original)
    def pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, *args: Any, **kwargs: Any) -> Any:
        kernel = list(kernel_size) if isinstance(kernel_size, tuple | list) else [kernel_size] * len(axes)
        plain = not kwargs and padding in (0, (0, 0)) and (not args or args[0] in (1, (1, 1)))
        if plain and _is_all(kernel, [input.shape[axis] for axis in axes]):
            return input.mean(axes, keepdim=True) if "avg" in name else input.amax(axes, keepdim=True)
        return original(input, kernel_size, stride, padding, *args, **kwargs)

    return pool


def _is_all(kernel: Sequence[Any], sizes: Sequence[Any]) -> bool:
    """Whether a kernel with open sizes is as large as the input."""
    if len(kernel) != len(sizes) or not any(isinstance(size, SymInt) for size in kernel):
        return False
    return all(statically_known_true(size == own) for size, own in zip(kernel, sizes, strict=True))


WORKAROUND = Workaround(
    reason="A pooling's kernel is plain numbers to torch: `avg_pool2d(x, x.shape[2:])`, as older networks end, fixed height and width.",
    upstream="none: no issue is known to us; torch 2.13 takes kernels as ints",
    targets=tuple(
        f"torch.nn.functional:{kind}_pool{rank}"
        for kind in ("avg", "max")
        for rank in _RANKS
        if (kind, rank) != ("max", "1d")  # see max_pool1d, which calls max_pool2d
    ),
    apply=over_all,
)
