"""Gated delta nets: the loops over chunks and over rows of a chunk, in closed form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ....workarounds import Workaround
from ...recurrences.delta_rule import gated_delta_rule


def delta_rule(original: Callable[..., Any]) -> Callable[..., Any]:
    """A chunked or recurrent delta rule in the signature of flash-linear-attention.

    One step on a state (the decode of a static trace) keeps the original, which has no loop then.
    """
    recurrent = "recurrent" in original.__name__

    @functools.wraps(original)
    def rule(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        g: Tensor,
        beta: Tensor,
        *args: Any,
        initial_state: Tensor | None = None,
        output_final_state: bool = False,
        use_qk_l2norm_in_kernel: bool = False,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        one_step = recurrent and isinstance(query.shape[1], int) and query.shape[1] == 1
        if args or one_step or kwargs.get("cu_seqlens") is not None:
            options = {**kwargs, "output_final_state": output_final_state, "initial_state": initial_state}
            return original(
                query, key, value, g, beta, *args, use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel, **options
            )
        output, state = gated_delta_rule(query, key, value, g, beta, initial_state, use_qk_l2norm_in_kernel)
        return output, state if output_final_state else None

    return rule


WORKAROUND = Workaround(
    reason="The delta rule loops over the chunks of the sequence in Python, which freezes its length, and over the rows of "
    "every chunk, which takes 500 nodes a layer (Qwen3-Next, Qwen3.5, OlmoHybrid; per-channel decay: Kimi Linear, GLM5).",
    upstream="none: the loops are right in eager; only a trace unrolls them",
    targets=(
        "transformers.models.*:torch_chunk_gated_delta_rule",
        "transformers.models.*:torch_recurrent_gated_delta_rule",
        "transformers.models.*:chunk_kimi_delta_attention",
        "transformers.models.*:recurrent_kimi_delta_attention",
    ),
    apply=delta_rule,
)
