"""Cache layers for generation: a sliding-window layer that keeps everything, so that one graph fits every step.

transformers crops a sliding layer to its window and remembers by a Python number how much it dropped; a graph would bake
that number in. These layers keep all positions and the sliding mask does the rest: an exported decode step can be
chained past the window, rolled back (speculative decoding) and continued with several tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers import cache_utils
from transformers.cache_utils import (
    DynamicLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndStaticFullAttentionLayer,
    StaticLayer,
)


class FullSlidingLayer(DynamicLayer):
    """A growing layer of a sliding-window (or chunked) attention that keeps every position."""

    is_sliding = True

    def __init__(self, sliding_window: int | None = None, **kwargs: Any) -> None:
        super().__init__()
        self.sliding_window = sliding_window


class StaticFullSlidingLayer(StaticLayer):
    """A fixed-size layer of a sliding-window (or chunked) attention that keeps every position."""

    is_sliding = True

    def __init__(self, max_cache_len: int, sliding_window: int | None = None, **kwargs: Any) -> None:
        super().__init__(max_cache_len=max_cache_len)
        self.sliding_window = sliding_window


class LinearAndFullSlidingLayer(LinearAttentionAndFullAttentionLayer):
    """A hybrid layer: a recurrent state, and a sliding attention that keeps every position."""

    is_sliding = True

    def __init__(self, sliding_window: int | None = None, number_of_states: int = 1, **kwargs: Any) -> None:
        super().__init__(number_of_states=number_of_states)
        self.sliding_window = sliding_window


class LinearAndStaticFullSlidingLayer(LinearAttentionAndStaticFullAttentionLayer):
    """The fixed-size counterpart of `LinearAndFullSlidingLayer`."""

    is_sliding = True

    def __init__(
        self, max_cache_len: int, sliding_window: int | None = None, number_of_states: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(max_cache_len=max_cache_len, number_of_states=number_of_states)
        self.sliding_window = sliding_window


_DYNAMIC = {
    "sliding_attention": FullSlidingLayer,
    "chunked_attention": FullSlidingLayer,
    "hybrid_sliding": LinearAndFullSlidingLayer,
}
_STATIC = {
    "sliding_attention": StaticFullSlidingLayer,
    "chunked_attention": StaticFullSlidingLayer,
    "hybrid_sliding": LinearAndStaticFullSlidingLayer,
}
_lock = threading.RLock()


@contextmanager
def full_windows() -> Iterator[None]:
    """While held, caches that transformers builds use the layers of this module."""
    with _lock:
        tables = (cache_utils.DYNAMIC_LAYER_TYPE_MAPPING, cache_utils.STATIC_LAYER_TYPE_MAPPING)
        before = [dict(table) for table in tables]
        try:
            for table, layers in zip(tables, (_DYNAMIC, _STATIC), strict=True):
                table.update(layers)
            yield
        finally:
            for table, original in zip(tables, before, strict=True):
                table.clear()
                table.update(original)
