"""Leave the caller's model, its config and the random state exactly as they were."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .plain_torch import plain_torch

logger = logging.getLogger(__name__)

#: Parameters, and values for them.
Weights = list[tuple[torch.nn.Parameter, torch.Tensor]]

_CONTAINERS = (dict, list, set)


@contextmanager
def untouched(model: torch.nn.Module) -> Iterator[None]:
    """Restore every attribute, buffer value and config field of `model` on any exit.

    Models change themselves in forward (a LongRoPE model swaps its frequencies, BigBird its attention, Qwen2-VL keeps
    position offsets), and an export changes switches on top. Parameters' values are not copied: what runs the eager model
    holds `kept_weights` too. The random state of the CPU is restored. Meanwhile the model sees `plain_torch`.
    """
    modules = [(module, _shallow(vars(module))) for module in model.modules()]
    values = [(buffer, buffer.detach().clone()) for buffer in model.buffers() if buffer.device.type != "meta"]
    configs = [(config, _shallow(vars(config))) for config in _configs(model)]
    requires_grad = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    state = torch.get_rng_state()
    try:
        with plain_torch(model):
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
            if parameter.requires_grad != flag:
                parameter.requires_grad_(flag)


@contextmanager
def kept_weights(model: torch.nn.Module) -> Iterator[None]:
    """Restore the parameters that an eager run writes, on any exit; only those are copied, right before.

    RWKV divides weights of its later layers in its first forward and notes that it did. The note is put back by
    `untouched`: with the weights left divided, the next forward would divide them again.
    """
    saving = _Saving(model)
    try:
        with saving:
            yield
    finally:
        put_back(saving.saved)


def written_weights(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Weights:
    """The parameters that one eager run writes, with the values that they have; it leaves no other trace."""
    saving = _Saving(model)
    try:
        with untouched(model), saving, torch.no_grad():
            model(**copy.deepcopy(dict(inputs)))
    except Exception as error:  # noqa: BLE001 - models raise whatever their ops raise; what was written until then counts
        logger.debug("the eager run failed: %s", error)
    finally:
        put_back(saving.saved)
    return saving.saved


def put_back(weights: Weights) -> None:
    """Give parameters the values that are held of them."""
    with torch.no_grad():
        for parameter, value in weights:
            parameter.copy_(value)


class _Saving(TorchDispatchMode):
    """Copies a parameter before the first operator that writes into its memory.

    Attributes:
        saved: Parameters that were written, with the values that they had.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.saved: Weights = []
        self._unwritten = {_memory(p): p for p in model.parameters() if p.device.type != "meta"}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            for at, argument in enumerate(func._schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    self._save(args[at] if at < len(args) else kwargs.get(argument.name))
        return func(*args, **kwargs)

    def _save(self, written: Any) -> None:
        for tensor in pytree.tree_leaves(written):
            parameter = self._unwritten.pop(_memory(tensor), None) if isinstance(tensor, torch.Tensor) else None
            if parameter is not None:
                self.saved.append((parameter, parameter.detach().clone()))


def _memory(tensor: torch.Tensor) -> int:
    """What tensors that share memory have in common."""
    return StorageWeakRef(tensor.untyped_storage()).cdata


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
