"""Packed vision and audio attention: one masked attention over all segments, instead of one call for each segment."""

from __future__ import annotations

import functools
import linecache
import re
import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...workarounds import Workaround
from ..packed import Lengths, same_segment_mask

#: Lines that turn lengths into numbers only to attend to the pieces one by one.
_SPLITTING = re.compile(r"split\(\w+, lengths\.tolist\(\)")


def packed(original: Callable[..., Any]) -> Callable[..., Any]:
    return {"tolist": _tolist, "split": _split, "get_interface": _get_interface}[original.__name__](original)


def _tolist(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def tolist(self: Tensor) -> Any:
        if self.dim() == 1 and _SPLITTING.search(_calling_line()):
            return Lengths(self, functools.partial(original, self))
        return original(self)

    return tolist


def _calling_line() -> str:
    """The line of modelling code that is running: the innermost frame outside this package."""
    frame: Any = sys._getframe(2)
    while frame is not None and __package__.partition(".")[0] in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    return "" if frame is None else linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def _split(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
        if not isinstance(split_size_or_sections, Lengths):
            return original(tensor, split_size_or_sections, dim)
        tensor._packed_lengths = split_size_or_sections.tensor  # type: ignore[attr-defined]
        return (tensor,)

    return split


def _get_interface(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_interface(self: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        attention = original(self, *args, **kwargs)

        @functools.wraps(attention)
        def masked(module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
            lengths = getattr(query, "_packed_lengths", None)
            if lengths is not None and not rest and options.get("attention_mask") is None:
                options["attention_mask"] = same_segment_mask(query.shape[2], lengths, query.dtype)
            return attention(module, query, key, value, *rest, **options)

        return masked

    return get_interface


WORKAROUND = Workaround(
    reason="Packed attention splits by lengths that are data, and a trace cannot split into a number of pieces that it does "
    "not know (Qwen2-VL to Qwen3.5, GLM4V, PaddleOCR-VL, VideoLLaMA3, RADIO, Qwen-Omni audio).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=(
        "torch._subclasses.fake_tensor:FakeTensor.tolist",
        "torch:split",
        "transformers.modeling_utils:AttentionInterface.get_interface",
    ),
    apply=packed,
)
