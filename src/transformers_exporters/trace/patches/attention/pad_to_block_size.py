"""BigBird and Longformer: pad to whole blocks at every length, not only at lengths that were traced with padding."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


class _Padding:
    """A padding length that always counts as positive. Minus it, or a padded length less it, is the length itself."""

    def __init__(self, length: Any) -> None:
        self._length = length

    def __gt__(self, other: int) -> bool:
        return True

    def __neg__(self) -> Any:
        return self._length

    def __rsub__(self, padded: Any) -> Any:
        return self._length


def pad_to_block_size(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_pad_to_block_size` or `_pad_to_window_size`, which returns the padding length and its tensor arguments in their order."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def pad(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        arguments = signature.bind(self, *args, **kwargs).arguments
        values = {name: value for name, value in arguments.items() if name not in ("self", "pad_token_id")}
        lengths = [value.shape[1] for value in values.values() if value is not None]
        length = lengths[0]
        # Padded lengths are equal for lengths that differ: say here that the lengths themselves are equal.
        for other in lengths[1:]:
            torch._check(other == length)
        windows = getattr(self.config, "attention_window", None)
        size = self.config.block_size if windows is None else windows if isinstance(windows, int) else max(windows)
        extra = (length + size - 1) // size * size - length
        return _Padding(length), *(_padded(self, name, value, extra) for name, value in values.items())

    return pad


def _padded(model: Any, name: str, value: Tensor | None, extra: Any) -> Tensor | None:
    if value is None:
        return None
    token = model.config.pad_token_id
    if value.dim() == 2:
        return F.pad(value, (0, extra), value=token if name in ("input_ids", "position_ids") else 0)
    ids = torch.full((value.shape[0], extra), token, dtype=torch.long, device=value.device)
    embed = model.embeddings if hasattr(model, "embeddings") else model.embed_tokens
    return torch.cat([value, embed(ids)], dim=1)


WORKAROUND = Workaround(
    reason="The model pads to whole blocks only if the length asks for it, so a graph traced at a whole number of blocks "
    "fails at every other length (BigBird, BigBirdPegasus, Longformer, LED).",
    upstream="none: the branch is right in eager; only a trace keeps one side",
    targets=("transformers.models.*:*._pad_to_block_size", "transformers.models.*:*._pad_to_window_size"),
    apply=pad_to_block_size,
)
