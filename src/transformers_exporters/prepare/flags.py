"""Switch a model to a form that can be traced: eval mode, a traceable attention, the backend's experts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from ..errors import UnsupportedModelError

logger = logging.getLogger(__name__)

_TRACEABLE_ATTENTION = ("eager", "sdpa", None)
_LOSS_INPUTS = ("labels", "start_positions", "end_positions")
_said: set[str] = set()


def refuse_losses(inputs: Mapping[str, Any]) -> None:
    """Raise `UnsupportedModelError` if the inputs ask for a loss; nothing is taken out of `inputs`."""
    for name, value in inputs.items():
        # `input_labels` say of SAM's points whether they are inside: they belong to the prompt.
        asks = name in _LOSS_INPUTS or (name.endswith("_labels") and not name.startswith("input_"))
        if (asks and value is not None) or (name == "return_loss" and value is True):
            raise UnsupportedModelError(
                f"An exported graph computes no loss: call export again without {name!r} (inference inputs only)."
            )


def make_traceable(model: torch.nn.Module, experts: str | None) -> None:
    """Change the model's switches in place; the caller holds `untouched(model)`.

    Args:
        model: The module that will be traced.
        experts: `experts_implementation` for mixture-of-experts layers, or None to keep the model's own.
    """
    if model.training or any(module.training for module in model.modules()):
        if model.training:
            _say_once("the model is in train mode; it is exported in eval mode")
        model.eval()
    _leave_inference_mode(model)
    for module in model.modules():
        config = getattr(module, "config", None)
        implementation = getattr(config, "_attn_implementation", None)
        if implementation not in _TRACEABLE_ATTENTION and hasattr(module, "set_attn_implementation"):
            target = "sdpa" if getattr(module, "_supports_sdpa", False) else "eager"
            _say_once(f"the attention implementation {implementation!r} cannot be exported; tracing with {target!r}")
            module.set_attn_implementation(target)  # type: ignore[operator]
        can_set = getattr(type(module), "_can_set_experts_implementation", None)
        if experts is not None and can_set is not None and can_set():
            module.set_experts_implementation(experts)  # type: ignore[operator]


def _leave_inference_mode(model: torch.nn.Module) -> None:
    """Tensors that were made in inference mode get twins over the same memory: a trace cannot set flags on the former."""
    twins: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for registry in (module._parameters, module._buffers):
            for name, tensor in registry.items():
                if tensor is None or not tensor.is_inference():
                    continue
                if id(tensor) not in twins:
                    twin = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                    twin.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
                    parameter = isinstance(tensor, torch.nn.Parameter)
                    twins[id(tensor)] = torch.nn.Parameter(twin, requires_grad=False) if parameter else twin
                registry[name] = twins[id(tensor)]  # type: ignore[assignment]


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        logger.warning(message)
