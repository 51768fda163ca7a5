"""Models whose `generate` prepares embeddings and hands the loop to an inner model: the inner one is split, the rest is a step."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from ...hf.replaced import replaced
from .record_calls import generate_options


@dataclass
class Delegation:
    """The inner `generate` that an outer one called first.

    Attributes:
        path: Dotted path of the inner model, empty while none was called.
        inputs: Its generate kwargs that say what to continue: no options of the loop. None where it was called with
            positional arguments, as the start of something else than a step (RAG's search for hypotheses).
    """

    path: str = ""
    inputs: dict[str, Any] | None = field(default_factory=dict)


@contextmanager
def watching_inner_loops(model: torch.nn.Module) -> Iterator[Delegation]:
    """While held, the first call of a submodule's `generate` is noted."""
    found = Delegation()
    with ExitStack() as stack:
        for path, module in model.named_modules():
            if path and callable(getattr(module, "generate", None)):
                stack.enter_context(replaced(module, _noting(found, path, module.generate), "generate"))
        yield found


def _noting(found: Delegation, path: str, original: Any) -> Any:
    def generate(*args: Any, **kwargs: Any) -> Any:
        if not found.path and args:
            found.path, found.inputs = path, None
        elif not found.path:
            options = {*generate_options(1), "generation_config", "logits_processor", "stopping_criteria", "streamer"}
            found.path = path
            found.inputs = {
                name: copy.deepcopy(value)
                for name, value in kwargs.items()
                if name not in options and value is not None
            }
        return original(*args, **kwargs)

    return generate


class DelegatedInputs(torch.nn.Module):
    """Runs a model's `generate` up to the inner model's.

    Args:
        model: The outer model.
        inner: The module whose `generate` it calls.
        names: The tensor kwargs of the inner `generate` to return.
    """

    def __init__(self, model: torch.nn.Module, inner: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.config = getattr(model, "config", None)
        self._inner = [inner]  # in a list: registered once, below `model`
        self._names = list(names)

    def forward(self, **kwargs: Any) -> dict[str, Any]:
        """The inner model's generate kwargs that are tensors, for the outer model's generate kwargs."""
        reached: list[Mapping[str, Any]] = []

        def generate(*args: Any, **inputs: Any) -> torch.Tensor:
            # Not an exception: it would leave torch.export inside the modules that it had entered.
            reached.append(inputs)
            return torch.zeros(1, 1, dtype=torch.long)

        with replaced(self._inner[0], generate, "generate"):
            self.model.generate(**kwargs)  # type: ignore[operator]
        return {name: reached[0][name] for name in self._names}
