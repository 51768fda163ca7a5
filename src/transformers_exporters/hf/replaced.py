"""Let a method of a module do something else for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch


class Reached(Exception):
    """Raised in place of running the language model."""

    def __init__(self, kwargs: Mapping[str, Any]) -> None:
        super().__init__("the language model was reached")
        self.kwargs = dict(kwargs)


@contextmanager
def replaced(module: torch.nn.Module, method: Any, name: str = "forward") -> Iterator[None]:
    """While held, the method `name` of `module` is `method`."""
    before = module.__dict__.get(name)
    module.__dict__[name] = method
    try:
        yield
    finally:
        if before is None:
            module.__dict__.pop(name, None)
        else:
            module.__dict__[name] = before


@contextmanager
def stopping_at(module: torch.nn.Module) -> Iterator[None]:
    """While held, a call of `module` raises `Reached` with its kwargs."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        raise Reached(kwargs)

    with replaced(module, forward):
        yield


@contextmanager
def returning(modules: Sequence[torch.nn.Module], results: list[Any]) -> Iterator[None]:
    """While held, the calls of `modules` return `results`, one after the other."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return results.pop(0)

    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(replaced(module, forward))
        yield
