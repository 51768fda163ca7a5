"""Shipped for tests, the demo and the benchmarks: checkpoints and models that need no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tiny import tiny_model

__all__ = ["tiny_model"]


def __getattr__(name: str) -> Any:
    """`tiny_model`, imported when it is asked for: the demo's children need no torch to find a checkpoint."""
    if name != "tiny_model":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .tiny import tiny_model

    return tiny_model
