"""`pad_sequence(torch.split(x, lengths))`: gathered from the tensor itself, for any number of lengths."""

from __future__ import annotations

from ....workarounds import Workaround
from ...idioms.pieces import padded

WORKAROUND = Workaround(
    reason="Audio is cut into chunks whose lengths are data, and these are padded to one length; cutting fixes their number "
    "(Qwen2.5-Omni, Qwen3-Omni).",
    upstream="none: the cut is right in eager; only a trace unrolls it",
    targets=("torch.nn.utils.rnn:pad_sequence",),
    apply=padded,
)
