"""State that a model keeps in attributes of its modules from step to step: made an input and an output of the step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ...hf.pytrees import CACHE_NAMES


def tensor_attributes(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """`{module path.attribute: tensor}` of all tensors that are neither parameters nor buffers."""
    return {f"{path}.{name}".removeprefix("."): value for path, name, value in _plain_tensors(model)}


def _plain_tensors(model: torch.nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                yield path, name, value


def changed(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> list[str]:
    """The attributes that a forward gave other values."""
    return [name for name, value in after.items() if name in before and not _same(before[name], value)]


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.is_meta or second.is_meta:
        return first is second  # no values to compare
    return first.shape == second.shape and torch.equal(first, second)


def state_key(name: str) -> str:
    """The name of an attribute among the inputs."""
    return name.replace(".", "_")


class WithModuleState(torch.nn.Module):
    """A model whose module attributes are an input and an output of forward.

    Args:
        model: The model.
        names: Its attributes that are state, as `tensor_attributes` names them.
    """

    def __init__(self, model: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.config = getattr(model, "config", None)
        owners = [name.rpartition(".") for name in names]
        # Dots are what separates the parts of an input's name.
        self._attributes = [(state_key(n), path, last) for n, (path, _, last) in zip(names, owners, strict=True)]

    def forward(self, module_state: Mapping[str, torch.Tensor] | None = None, **kwargs: Any) -> dict[str, Any]:
        """The model's outputs, with the cache (also where the model only writes into it) and the new state.

        Args:
            module_state: The attributes; without it the model starts as if newly made.
            kwargs: The model's own.
        """
        before = [vars(self.model.get_submodule(path)).get(name) for _, path, name in self._attributes]
        try:
            for key, path, name in self._attributes:
                vars(self.model.get_submodule(path))[name] = None if module_state is None else module_state[key]
            outputs = dict(self.model(**kwargs))
            for name in CACHE_NAMES:
                if kwargs.get(name) is not None and not any(known in outputs for known in CACHE_NAMES):
                    outputs["cache"] = kwargs[name]
            outputs["module_state"] = {
                key: vars(self.model.get_submodule(path))[name] for key, path, name in self._attributes
            }
            return outputs
        finally:  # torch.export refuses tensors that it finds assigned afterwards
            for (_, path, name), value in zip(self._attributes, before, strict=True):
                vars(self.model.get_submodule(path))[name] = value
