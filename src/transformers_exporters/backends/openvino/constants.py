"""Weights as OpenVINO constants over the memory that already holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from openvino import Tensor, op

from ...artifact.weights import CheckpointRef, WeightRef
from ...errors import LoweringError
from .dtypes import PORT_TYPES

# numpy has no such element: the bytes travel as another type of the same width.
_CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


class Constants:
    """Makes the constant of a weight; equal references share one constant.

    The constants share memory with the tensor, or with the mapped checkpoint file, and keep it alive; those of bfloat16
    and float8 are copies.

    Args:
        weights: References by fully qualified name.
    """

    def __init__(self, weights: Mapping[str, WeightRef]) -> None:
        self._weights = weights
        self._made: dict[Any, op.Constant] = {}

    def __call__(self, name: str) -> op.Constant:
        """The constant of the weight `name`.

        Raises:
            LoweringError: If the weight has no values, or a dtype that OpenVINO cannot hold.
        """
        ref = self._weights.get(name)
        if ref is None:
            raise LoweringError(f"The weight {name} has no reference to its values; report this as a defect.")
        key = _identity(ref)
        if key not in self._made:
            self._made[key] = _constant(name, ref)
        return self._made[key]


def _identity(ref: WeightRef) -> Any:
    if isinstance(ref, CheckpointRef):
        return ref.file, ref.offset, ref.dtype, ref.shape
    tensor: torch.Tensor = ref.tensor
    return tensor.data_ptr(), ref.dtype, ref.shape, tensor.stride(), id(tensor) if tensor.numel() == 0 else 0


def _constant(name: str, ref: WeightRef) -> op.Constant:
    array = _mapped(ref) if isinstance(ref, CheckpointRef) else _array(name, ref.tensor)
    if ref.dtype in _CARRIERS:
        # A copy: a constant made from a `Tensor` does not keep the array alive (openvino 2026.4.1: a crash when the mapping
        # went away before the model was written), and numpy has no such element to share as an array.
        made = op.Constant(Tensor(array, list(array.shape), _type(name, ref.dtype)), shared_memory=False)
    elif ref.dtype.startswith("complex"):
        real = "float32" if ref.dtype == "complex64" else "float64"
        made = op.Constant(np.ascontiguousarray(array).view(real).reshape(*array.shape, 2), shared_memory=True)
    else:
        made = op.Constant(array, shared_memory=True)
    made.set_friendly_name(name)
    return made


def _type(name: str, dtype: str) -> Any:
    if dtype not in PORT_TYPES:
        raise LoweringError(f"The weight {name} is {dtype}, which OpenVINO cannot hold; convert the model first.")
    return PORT_TYPES[dtype]


def _mapped(ref: CheckpointRef) -> Any:
    if ref.length == 0:
        return np.zeros(ref.shape, _CARRIERS.get(ref.dtype, ref.dtype))
    # Copy on write: the binding takes writeable arrays only, and never writes.
    return np.memmap(ref.file, _CARRIERS.get(ref.dtype, ref.dtype), "c", ref.offset, ref.shape)


def _array(name: str, tensor: torch.Tensor) -> Any:
    if tensor.is_meta:
        raise LoweringError(f"The weight {name} was never loaded and has no file to read it from.")
    tensor = tensor.detach().cpu().contiguous()
    carrier = _CARRIERS.get(str(tensor.dtype).removeprefix("torch."))
    return tensor.view(getattr(torch, carrier)).numpy() if carrier else tensor.numpy()
