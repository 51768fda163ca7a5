"""Mamba-2: the chunked scan for sequences longer than one chunk, whatever the traced length."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


def chunk_scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """`mamba2_chunk_scan` on at least two chunks: a single one would be an axis of size 1, which a trace makes constant.

    The steps are finished (bias, softplus, limits) before they are padded: a step of length 0 leaves the state as it is.
    """

    @functools.wraps(original)
    def scan(
        hidden_states: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        chunk_size: int,
        D: Tensor | None = None,
        dt_bias: Tensor | None = None,
        dt_softplus: bool = False,
        dt_limit: tuple[float, float] = (0.0, float("inf")),
        return_final_states: bool = False,
        **options: Any,
    ) -> Any:
        length = hidden_states.shape[1]
        if dt_bias is not None:
            dt = dt + dt_bias.to(dt.dtype)
        if dt_softplus:
            dt = F.softplus(dt)
        dt = dt.clamp(min=dt_limit[0], max=dt_limit[1])
        missing = ((length + chunk_size - 1) // chunk_size + 1) * chunk_size - length

        def pad(x: Tensor) -> Tensor:
            return F.pad(x, [0, 0] * (x.dim() - 2) + [0, missing])

        result = original(
            pad(hidden_states),
            pad(dt),
            A,
            pad(B),
            pad(C),
            chunk_size=chunk_size,
            D=D,
            return_final_states=return_final_states,
            **options,
        )
        if return_final_states:
            return result[0][:, :length], result[1]
        return result[:, :length]

    return scan


WORKAROUND = Workaround(
    reason="Traced on less than a chunk, Mamba-2 takes no more than a chunk: 256 tokens for real models (Mamba2, Bamba, "
    "Zamba2, FalconH1, NemotronH, GraniteMoeHybrid).",
    upstream="none: sizes of 1 are constants to torch.export by design",
    targets=("transformers.models.*:mamba2_chunk_scan",),
    apply=chunk_scan,
)
