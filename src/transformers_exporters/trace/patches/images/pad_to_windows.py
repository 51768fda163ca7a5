"""Swin and its relatives: pad to whole patches, windows and pairs at every size, with shapes that stay simple."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import SymInt, Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


class _Padding:
    """An amount of padding that always counts as positive, so that the model always crops it off again."""

    def __gt__(self, other: int) -> bool:
        return True


def maybe_pad(original: Callable[..., Any]) -> Callable[..., Any]:
    """`maybe_pad(x, height, width)` of a patch embedding, a window layer or a patch merging.

    - A patch embedding has `patch_size`: NCHW, padded to whole patches.
    - A window layer has `window_size` and returns its padding too: NHWC, padded to whole windows.
    - A patch merging has neither: NHWC, padded to even sizes.

    Layers that pad in another way (a `kernel_size`: neighbourhood attention) are left alone.
    """

    @functools.wraps(original)
    def pad(self: Any, x: Tensor, height: Any, width: Any) -> Any:
        if hasattr(self, "kernel_size") or not (isinstance(height, SymInt) or isinstance(width, SymInt)):
            return original(self, x, height, width)
        if hasattr(self, "patch_size"):
            return F.pad(x, (0, _missing(width, self.patch_size[1]), 0, _missing(height, self.patch_size[0])))
        if not hasattr(self, "window_size"):
            return F.pad(x, (0, 0, 0, _missing(width, 2), 0, _missing(height, 2)))
        if not isinstance(self.window_size, int):  # the window is the image itself
            return original(self, x, height, width)
        padded = F.pad(x, (0, 0, 0, _missing(width, self.window_size), 0, _missing(height, self.window_size)))
        return padded, (0, 0, 0, _Padding(), 0, _Padding())

    return pad


def _missing(size: Any, multiple: int) -> Any:
    # Not `(multiple - size % multiple) % multiple`: sympy takes minutes over it, and cannot see that the sum divides.
    return (size + multiple - 1) // multiple * multiple - size


WORKAROUND = Workaround(
    reason="Padding by remainders makes the shape algebra of window attention take minutes, and the branch on whether to "
    "pad holds for the traced sizes only (Swin, Swinv2, Swin2SR, DonutSwin, MaskFormerSwin, CLAP, FocalNet).",
    upstream="none: the branch is right in eager; only a trace keeps one side",
    targets=("transformers.models.*:*.maybe_pad",),
    apply=maybe_pad,
)
