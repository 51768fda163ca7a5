"""The padding that lets a convolution reach the end of a signal, in whole numbers of sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ....workarounds import Workaround


def extra_padding(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_get_extra_padding_for_conv1d` over the numbers that `prepare.number_buffers` puts in the place of buffers."""

    @functools.wraps(original)
    def padding(self: Any, hidden_states: Tensor) -> Any:
        if not all(isinstance(number, int) for number in (self.stride, self.kernel_size, self.padding_total)):
            return original(self, hidden_states)
        stride = int(self.stride)
        beyond = hidden_states.shape[-1] - int(self.kernel_size) + int(self.padding_total)
        return (beyond + stride - 1) // stride * stride - beyond

    return padding


WORKAROUND = Workaround(
    reason="The extra padding is rounded up as a tensor and read back as a size, so the sizes behind it are data: their "
    "comparisons are answered from the sample (Encodec, Mimi, WavTokenizer, Pocket TTS).",
    upstream="none: no issue is known to us",
    targets=("transformers.models.*:*._get_extra_padding_for_conv1d",),
    apply=extra_padding,
)
