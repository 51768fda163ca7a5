"""Weights that a model's Python code uses between its components: the graphs do not hold them, so the artifact must."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class WatchWeights(TorchFunctionMode):
    """While held, notes which of a model's weights outside the given modules are used.

    Args:
        model: The model.
        parts: Modules that become components: their own weights are not of interest.

    Attributes:
        used: Names of the weights, in the order of their first use.
    """

    def __init__(self, model: torch.nn.Module, parts: Iterable[torch.nn.Module]) -> None:
        super().__init__()
        inside = {id(weight) for part in parts for weight in _weights(part).values()}
        self._names = {id(weight): name for name, weight in _weights(model).items() if id(weight) not in inside}
        self.used: dict[str, None] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        for value in (*args, *(kwargs or {}).values()):
            for item in value if isinstance(value, list | tuple) else (value,):
                name = self._names.get(id(item))
                if name is not None:
                    self.used[name] = None
        return func(*args, **(kwargs or {}))


def _weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}
