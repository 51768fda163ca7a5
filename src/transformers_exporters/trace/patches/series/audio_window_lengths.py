"""The boundaries of attention windows over packed audio (Qwen3-ASR, Qwen3-Omni), without a loop over clips."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


def cu_seqlens(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_audio_cu_seqlens` of the kind that cuts each clip into windows: int32, ends of the windows after a first 0.

    A clip has at most as many windows as there are chunks. Windows that it does not have get the length 0, which repeats
    a boundary: attention over nothing, so nothing changes.
    """
    if "n_window_infer" not in inspect.signature(original).parameters:
        return original
    lengths_after_cnn = original.__globals__["_get_feat_extract_output_lengths"]

    @functools.wraps(original)
    def boundaries(
        chunk_lengths: Tensor,
        feature_lens: Tensor,
        n_window_infer: int,
        n_window: int,
        kwargs: dict[str, Any] | None = None,
    ) -> Tensor:
        if kwargs is not None and (given := kwargs.pop("cu_seqlens", None)) is not None:
            return given
        window = lengths_after_cnn(chunk_lengths, n_window).amax() * (n_window_infer // (n_window * 2))
        start = torch.arange(chunk_lengths.shape[0], device=feature_lens.device) * window
        left = lengths_after_cnn(feature_lens, n_window)[:, None] - start[None, :]
        lengths = torch.minimum(left.clamp(min=0), window)
        return F.pad(lengths.flatten().cumsum(0), (1, 0)).to(torch.int32)

    return boundaries


WORKAROUND = Workaround(
    reason="The windows of each audio clip are counted in Python from lengths that are data (Qwen3-ASR, Qwen3-Omni).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:get_audio_cu_seqlens",),
    apply=cu_seqlens,
)
