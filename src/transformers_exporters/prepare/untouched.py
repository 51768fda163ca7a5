"""Leave the caller's model, its config and the random state exactly as they were."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_CONTAINERS = (dict, list, set)


@contextmanager
def untouched(model: torch.nn.Module) -> Iterator[None]:
    """Restore every attribute, buffer value and config field of `model` on any exit.

    Models change themselves in forward (a LongRoPE model swaps its frequencies, BigBird its attention, Qwen2-VL keeps
    position offsets), and an export changes switches on top. Parameters' values are not copied: nothing writes them.
    The random state of the CPU is restored too.
    """
    modules = [(module, _shallow(vars(module))) for module in model.modules()]
    values = [(buffer, buffer.detach().clone()) for buffer in model.buffers() if buffer.device.type != "meta"]
    configs = [(config, _shallow(vars(config))) for config in _configs(model)]
    requires_grad = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        for owner, attributes in [*modules, *configs]:
            vars(owner).clear()
            vars(owner).update(attributes)
        with torch.no_grad():
            for buffer, value in values:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
        for parameter, flag in requires_grad:
            parameter.requires_grad_(flag)


def _shallow(attributes: dict[str, Any]) -> dict[str, Any]:
    """A copy that later changes do not reach: containers are copied, what they hold is shared."""
    return {name: copy.copy(value) if isinstance(value, _CONTAINERS) else value for name, value in attributes.items()}


def _configs(model: torch.nn.Module) -> list[Any]:
    """Every config object that the model's modules hold, sub-configs included, each once."""
    from transformers import GenerationConfig, PreTrainedConfig

    found: dict[int, Any] = {}

    def visit(value: Any) -> None:
        if isinstance(value, PreTrainedConfig | GenerationConfig) and id(value) not in found:
            found[id(value)] = value
            for item in vars(value).values():
                visit(item)

    for module in model.modules():
        for value in vars(module).values():
            visit(value)
    return list(found.values())
