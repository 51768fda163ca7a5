"""Comprehensions over a batch that do the same to each row: done once to all rows.

`[height * width for height, width in image_sizes]` is one tensor for all images, instead of one number for each;
`[row.flatten(0, 1) for row in batch]` is the flat batch; `[row[-count:] for row in series]` is the end of all series.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from torch import SymInt, Tensor

from ....workarounds import Workaround
from ...idioms.calling import calling_code, calling_statement

#: A list with a number for each pair of sizes.
_LENGTHS = re.compile(r"(= \[.*|^\s*)for (\w+), (\w+) in [\w.]+\s*\]?$")
#: A list of rows, each made flat; the function puts them together.
_FLAT = re.compile(r"= \[(\w+)\.flatten\(0, 1\) for \1 in ")
#: The ends of time series, which `_preprocess` makes equally long (`patches.equal_series`).
_ENDS = re.compile(r"= \[(\w+)\[-\w+:\] for \1 in ")


def rows(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def iterate(self: Tensor) -> Iterator[Any]:
        """Once, over what stands for every row, where the list that is made serves to split or to join."""
        if self.dim() > 1 and isinstance(self.shape[0], SymInt):
            called, line = calling_code().co_names, calling_statement()
            if self.dim() == 2 and self.shape[1] == 2 and "split" in called and _LENGTHS.search(line):
                return iter([self.unbind(1)])  # heights and widths
            if self.dim() > 2 and "cat" in called and _FLAT.search(line):
                return iter([self.flatten(0, 1)])
            if self.dim() == 2 and "_preprocess" in called and _ENDS.search(line):
                return iter([self.T])  # time first, as in one series
        iterator: Iterator[Any] = original(self)
        return iterator

    return iterate


WORKAROUND = Workaround(
    reason="A list with an item for each row of a batch fixes the batch: lengths of packed images (LightOnOCR, Emu3), features "
    "of videos (LLaVA-NeXT-Video), time series (TimesFM).",
    upstream="none: Python asks a list for its length, so torch has no other answer",
    targets=("torch._subclasses.fake_tensor:FakeTensor.__iter__",),
    apply=rows,
)
