"""Functions of a model's code that remember their results do not, while it is traced."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def uncached(model: torch.nn.Module) -> Iterator[None]:
    """While held, `functools.lru_cache` and `cache` on methods and functions of the model's modules call through.

    A symbolic size cannot be a key ("unhashable type: non-nested SymInt", OmDet-Turbo's anchors), and a result of a trace in
    a cache of the process would be found by the next eager run.
    """
    kinds = {kind for module in model.modules() for kind in type(module).__mro__ if not _is_torch(kind.__module__)}
    files = {sys.modules[kind.__module__] for kind in kinds if kind.__module__ in sys.modules}
    held: list[tuple[Any, str, Any]] = [
        (owner, name, value)
        for owner in (*kinds, *files)
        for name, value in list(vars(owner).items())
        if isinstance(value, functools._lru_cache_wrapper)
    ]
    try:
        for owner, name, value in held:
            setattr(owner, name, value.__wrapped__)
        yield
    finally:
        for owner, name, value in held:
            setattr(owner, name, value)


def _is_torch(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "builtins")
