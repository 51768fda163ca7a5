"""Attention masks from functions of indices: on broadcast indices instead of under `torch.vmap`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor
from transformers import masking_utils

from ....workarounds import Workaround


def without_vmap(original: Any) -> Any:
    """`_vmap_expansion_sdpa` by broadcasting, and no rewriting of the index operator around it."""
    return contextlib.nullcontext if isinstance(original, type) else _broadcast(original)


def _broadcast(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def expansion(mask_function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def mask(*indices: Tensor) -> Tensor:
            broadcast = masking_utils._non_vmap_expansion_sdpa(*indices)
            return mask_function(*broadcast).expand(*(index.shape[0] for index in indices))

        return mask

    return expansion


WORKAROUND = Workaround(
    reason="A mask function of the model's own is called under vmap with an operator that no program can hold: it cannot "
    "be saved (Gemma3 and other models in which image tokens see each other).",
    upstream="https://github.com/huggingface/transformers/issues/42721",
    targets=(
        "transformers.masking_utils:_vmap_expansion_sdpa",
        "transformers.masking_utils:TransformGetItemToIndex",
    ),
    apply=without_vmap,
)
