"""A loop over the experts that are hit, in modelling code of any kind: over all of them, as the others write nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from ....workarounds import Workaround
from ...idioms.calling import calling_locals, calling_place
from ...idioms.hits import mask_of_loop


class _Row(list[int]):
    """A row of what `nonzero` gives for one axis: an index, as a number where code asks for one."""

    def item(self) -> int:
        return self[0]

    def __index__(self) -> int:
        return self[0]


def over_all(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """`Tensor.__iter__`, that of a tensor of as many rows as there are hits, in a loop that can take them all."""

    @functools.wraps(original)
    def rows(self: Any) -> Iterator[Any]:
        if self.dim() == 2 and has_free_unbacked_symbols(self.shape[0]):
            name = mask_of_loop(*calling_place())
            mask = calling_locals().get(name) if name else None
            if mask is not None and isinstance(mask.shape[0], int):
                return iter([_Row([index]) for index in range(mask.shape[0])])
        return original(self)

    return rows


WORKAROUND = Workaround(
    reason="`for expert in hit:` after `hit = (mask.sum((-1, -2)) > 0).nonzero()` has as many rounds as the sample hits experts "
    "(mixtures of experts in a model's own code).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("torch:Tensor.__iter__",),
    apply=over_all,
)
