"""Attention whose `is_causal` is the answer to a question about a size."""

from __future__ import annotations

import functools
from collections.abc import Callable

from torch import SymBool, Tensor

from ....workarounds import Workaround


def decided(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`scaled_dot_product_attention` that takes the answer as a bool."""

    @functools.wraps(original)
    def attention(query: Tensor, key: Tensor, value: Tensor, *args: object, **kwargs: object) -> Tensor:
        if isinstance(kwargs.get("is_causal"), SymBool):
            kwargs["is_causal"] = bool(kwargs["is_causal"])
        return original(query, key, value, *args, **kwargs)

    return attention


WORKAROUND = Workaround(
    reason="`q_length > 1 and ...` is a symbol where the traced length is 1 (the speech encoders of SeamlessM4T v2), and "
    "the op takes no symbol.",
    upstream="https://github.com/huggingface/transformers/pull/46196 leaves it to exporters",
    targets=("torch.nn.functional:scaled_dot_product_attention",),
    apply=decided,
)
