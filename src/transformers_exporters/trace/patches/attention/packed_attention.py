"""Packed vision and audio attention: one masked attention over all segments, instead of one call for each segment."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from ....workarounds import Workaround
from ...idioms.calling import calling_code, calling_line, calling_statement
from ...idioms.pieces import cut
from ...images.packed import Lengths, is_column, same_segment_mask

#: Lines that turn lengths into numbers only to attend to the pieces one by one.
_SPLITTING = re.compile(r"split\(\w+, lengths\.tolist\(\)")

#: A line that turns lengths into numbers only to add them up.
_SUMMED = re.compile(r"\bsum\([\w.]+\.tolist\(\)\)")
#: What a function calls that cuts a tensor by lengths, as many as there are images.
_NAMED = frozenset(("split", "tolist"))


def packed(original: Callable[..., Any]) -> Callable[..., Any]:
    return {"tolist": _tolist, "split": _split, "get_interface": _get_interface}[original.__name__](original)


def _tolist(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def tolist(self: Tensor) -> Any:
        if self.dim() != 1:
            return original(self)
        masked = bool(_SPLITTING.search(calling_line()))
        open_number = isinstance(self.shape[0], SymInt)
        if open_number and (statement := calling_statement()).count("tolist") == 1 and _SUMMED.search(statement):
            return [self.sum().item()]
        if not masked and not (open_number and _NAMED.issubset(calling_code().co_names)):
            return original(self)
        return Lengths(self, functools.partial(original, self), masked)

    return tolist


def _split(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
        if is_column(split_size_or_sections):
            lengths = split_size_or_sections[0]
            split_size_or_sections = Lengths(lengths, lengths.tolist, masked=False)
        if not isinstance(split_size_or_sections, Lengths):
            return original(tensor, split_size_or_sections, dim)
        if not split_size_or_sections.masked:
            return cut(original, tensor, split_size_or_sections, dim)
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
                if has_free_unbacked_symbols(query.shape[2]):
                    torch._check(query.shape[2] > 1)  # asked of every attention, although only a causal one differs
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
        "torch:Tensor.split",
        "transformers.modeling_utils:AttentionInterface.get_interface",
    ),
    apply=packed,
)
