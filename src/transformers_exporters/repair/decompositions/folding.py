"""Patches put back into an image, added where they overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def col2im(
    x: Tensor,
    size: Sequence[Any],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """x: [batch, channels * kernel, patches] or without a batch -> [batch, channels, *size].

    torch's own rule crops by a negative padding, which ExecuTorch refuses.
    """
    if x.dim() == 2:
        return col2im(x.unsqueeze(0), size, kernel, dilation, padding, stride).squeeze(0)
    (rows, down), (columns, across) = (
        _places(size[i], kernel[i], dilation[i], padding[i], stride[i]) for i in range(2)
    )
    height, width = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    channels = x.shape[1] // (kernel[0] * kernel[1])
    patches = x.reshape(x.shape[0], channels, kernel[0], kernel[1], down, across).transpose(3, 4)
    image = torch.zeros([x.shape[0], channels, height, width], dtype=x.dtype, device=x.device)
    where = [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns]
    image = torch.ops.aten.index_put.default(image, where, patches, True)
    return image.narrow(2, padding[0], size[0]).narrow(3, padding[1], size[1])


def _places(size: Any, kernel: int, dilation: int, padding: int, stride: int) -> tuple[Tensor, Any]:
    """int64 [kernel, patches]: where in the padded axis each place of each patch is; and how many patches there are."""
    count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return torch.arange(kernel).unsqueeze(1) * dilation + torch.arange(count).unsqueeze(0) * stride, count


RULES = {"aten.col2im.default": col2im}
