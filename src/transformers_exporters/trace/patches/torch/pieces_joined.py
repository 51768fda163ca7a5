"""`torch.cat(torch.split(x, lengths))`: the tensor itself, for any number of lengths."""

from __future__ import annotations

from ....workarounds import Workaround
from ...idioms.pieces import joined

WORKAROUND = Workaround(
    reason="Features are cut into one tensor per image and put together again; cutting fixes the number of images "
    "(Qwen-VL, GLM-V, Idefics, SmolVLM, Gemma4 and most models that take packed images).",
    upstream="none: the cut is right in eager; only a trace unrolls it",
    targets=("torch:cat",),
    apply=joined,
)
