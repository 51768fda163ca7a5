"""`torch.cat([x] * batch)` and `torch.stack([x] * batch)`: a repetition whose number stays open."""

from __future__ import annotations

from ....workarounds import Workaround
from ...idioms.repeated import stacked

WORKAROUND = Workaround(
    reason="A list times a size fixes the size: a tensor is repeated by `torch.concat([x] * x.shape[0])` (TimesFM).",
    upstream="none: Python asks a size for a number when a list is repeated, so torch has no other answer",
    targets=("torch:stack", "torch:concat", "torch:concatenate"),
    apply=stacked,
)
