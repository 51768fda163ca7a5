"""Inputs in the precision of the model: processors make float32, which most models of 16 bits refuse."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .shapes_only import run_forward
from .untouched import kept_weights, untouched

logger = logging.getLogger(__name__)

_NARROW = {torch.float16, torch.bfloat16}
_aten = torch.ops.aten
_OF_ONE_DTYPE = (_aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm, _aten.convolution)


def in_own_precision(model: torch.nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, with float32 tensors in the model's 16 bits where it takes them in no other way.

    A trace asks no kernel: it would go on with a product of float32 and float16, which no engine computes.

    Args:
        model: The module that will be traced.
        inputs: Forward kwargs; not changed.
    """
    cast = narrowed(model, inputs)
    if cast is None or not _mixes(model, inputs) or _mixes(model, cast):
        return dict(inputs)
    say_narrowed(model)
    return cast


def narrowed(model: torch.nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The inputs with float32 tensors in the model's 16 bits; None if it has other bits, or nothing is float32."""
    own = {p.dtype for p in model.parameters() if p.is_floating_point()}
    wide = [leaf for leaf in pytree.tree_leaves(dict(inputs)) if getattr(leaf, "dtype", None) is torch.float32]
    if len(own) != 1 or not own <= _NARROW or not wide:
        return None
    (dtype,) = own
    cast: dict[str, Any] = pytree.tree_map(
        lambda leaf: leaf.to(dtype) if getattr(leaf, "dtype", None) is torch.float32 else leaf, dict(inputs)
    )
    return cast


def say_narrowed(model: torch.nn.Module) -> None:
    """Warn that float32 inputs became the model's 16 bits."""
    dtype = str(next(p.dtype for p in model.parameters() if p.is_floating_point())).removeprefix("torch.")
    logger.warning("the model takes no float32 inputs: its graphs take them as %s", dtype)


class _MixedError(RuntimeError):
    """A product of tensors of two dtypes."""


class _NoProductOfTwo(TorchDispatchMode):
    """Raises where a product is asked for of tensors of two dtypes: on the meta device, torch itself does not."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        dtypes = {value.dtype for value in args if isinstance(value, torch.Tensor)}
        if len(dtypes) > 1 and func.overloadpacket in _OF_ONE_DTYPE:
            raise _MixedError(f"{func} of tensors of two dtypes")
        return func(*args, **(kwargs or {}))


def _mixes(model: torch.nn.Module, inputs: Mapping[str, Any]) -> bool:
    """Whether the model multiplies tensors of two dtypes."""
    try:
        with torch.no_grad(), untouched(model), kept_weights(model), _NoProductOfTwo():
            run_forward(model, inputs)
    except _MixedError as error:
        logger.debug("refused: %s", error)
        return True
    except Exception as error:  # noqa: BLE001 - what else the model refuses is not about precision
        logger.debug("refused for another reason: %s", error)
    return False
