"""`torch._check(count == 32 * size)`, of a count that is data: both stay as they are where torch's bounds do not fit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....workarounds import Workaround


def tolerant(original: Callable[..., None]) -> Callable[..., None]:
    """`ShapeEnv._set_replacement` that leaves out a replacement whose bounds torch cannot make fit.

    The equality itself is asserted by the graph all the same.
    """

    @functools.wraps(original)
    def set_replacement(self: Any, symbol: Any, target: Any, reason: str) -> None:
        try:
            original(self, symbol, target, reason)
        except AssertionError as error:
            if "not a subset of" not in str(error):
                raise

    return set_replacement


WORKAROUND = Workaround(
    reason="An upper bound of 2**63 - 2 divided by 32 is rounded in floating point and no longer fits: `tgt_bound not a subset "
    "of src_bound` where a model checks that its image tokens are as many as its image features (MiniMax-M3).",
    upstream="none: no issue is known to us (torch 2.13)",
    targets=("torch.fx.experimental.symbolic_shapes:ShapeEnv._set_replacement",),
    apply=tolerant,
)
