"""`[height * width for height, width in image_sizes]`: one tensor for all images, instead of one number for each."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from torch import SymInt, Tensor

from ...workarounds import Workaround
from ..calling import calling_code, calling_line

#: A list with a number for each pair of sizes.
_LENGTHS = re.compile(r"= \[.* for (\w+), (\w+) in [\w.]+\]")


def columns(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def iterate(self: Tensor) -> Iterator[Any]:
        """Once over (heights, widths), where what is computed of each pair are the lengths to split something by."""
        if (
            self.dim() == 2
            and isinstance(self.shape[0], SymInt)
            and self.shape[1] == 2
            and "split" in calling_code().co_names
            and _LENGTHS.search(calling_line())
        ):
            return iter([self.unbind(1)])
        iterator: Iterator[Any] = original(self)
        return iterator

    return iterate


WORKAROUND = Workaround(
    reason="Lengths of packed images are computed in a list, one number an image, which fixes their number (LightOnOCR).",
    upstream="none: Python asks a list for its length, so torch has no other answer",
    targets=("torch._subclasses.fake_tensor:FakeTensor.__iter__",),
    apply=columns,
)
