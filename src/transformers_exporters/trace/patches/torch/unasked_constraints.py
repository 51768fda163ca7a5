"""What a trace found out about axes that nobody named is not solved for: only messages about named axes would use it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....workarounds import Workaround


def only_if_asked(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """`DimConstraints.solve`, left out where no axis has to be dynamic (every one is `Dim.AUTO`)."""

    @functools.wraps(original)
    def solve(self: Any) -> None:
        if self._marked_dynamic:
            original(self)

    return solve


WORKAROUND = Workaround(
    reason="sympy cannot solve `h/16 = 2 * (h/4//8)`, and the trace fails on it at its very end (SAM 2's vision model).",
    upstream="none: no issue is known to us (torch 2.13, `DimConstraints.solve`)",
    targets=("torch.fx.experimental.symbolic_shapes:DimConstraints.solve",),
    apply=only_if_asked,
)
