"""Pooling over three axes, as pooling over two and then one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.nn import functional as F

from ..convolutions import per_axis


def _separately(x: Tensor, plane: Callable[[Tensor], Tensor], line: Callable[[Tensor], Tensor]) -> Tensor:
    """x: [..., channels, depth, height, width]: `plane` pools the last two axes of a [n, 1, h, w], `line` a [n, 1, d]."""
    lead, depth = x.shape[:-3], x.shape[-3]
    flat = plane(x.reshape(-1, 1, *x.shape[-2:]))
    height, width = flat.shape[-2:]
    columns = flat.reshape(-1, depth, height * width).transpose(1, 2)
    pooled = line(columns.reshape(-1, 1, depth))
    return pooled.reshape(-1, height * width, pooled.shape[-1]).transpose(1, 2).reshape(*lead, -1, height, width)


def avg_pool3d(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil: bool = False,
    include_pad: bool = True,
    divisor: int | None = None,
) -> Tensor:
    """The mean of means: all windows have the same size unless the border is left out of the count."""
    k, p = per_axis(kernel, 3), per_axis(padding, 3)
    s = per_axis(stride, 3) if stride else k
    if ceil or divisor is not None or (not include_pad and any(p)):
        raise NotImplementedError
    return _separately(
        x,
        lambda t: F.avg_pool2d(t, k[1:], s[1:], p[1:]),
        lambda t: F.avg_pool1d(t, k[:1], s[:1], p[:1]),
    )


def max_pool3d(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil: bool = False,
) -> Tensor:
    """The largest of the largest."""
    k, p, d = per_axis(kernel, 3), per_axis(padding, 3), per_axis(dilation, 3)
    s = per_axis(stride, 3) if stride else k
    return _separately(
        x,
        lambda t: F.max_pool2d(t, k[1:], s[1:], p[1:], d[1:], ceil),
        lambda t: F.max_pool2d(t.unsqueeze(-1), [k[0], 1], [s[0], 1], [p[0], 0], [d[0], 1], ceil).squeeze(-1),
    )


RULES = {"aten.avg_pool3d.default": avg_pool3d, "aten.max_pool3d.default": max_pool3d}
