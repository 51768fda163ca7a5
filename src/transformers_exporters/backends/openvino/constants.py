"""Weights as OpenVINO constants over the memory, or the mapped file, that already holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from openvino import Tensor, op

from ...artifact.weights import CheckpointRef, WeightRef
from ...errors import LoweringError
from .dtypes import PORT_TYPES
from .mapping import Place, map_file

# numpy has no such element: the bytes travel as another type of the same width.
_CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


@dataclass(frozen=True)
class MappedRef(CheckpointRef):
    """A weight in a checkpoint file, and the constant that was made over it.

    Attributes:
        constant: The `openvino.op.Constant`. It is held here so that no other constant can come to lie at its address.
    """

    constant: Any


class Constants:
    """Makes the constant of a weight; equal references share one constant.

    The constants share memory with the tensor, or with the mapped checkpoint file, and keep it alive; those of bfloat16
    and float8 tensors in memory are copies.

    Args:
        weights: References by fully qualified name.

    Attributes:
        mapped: The references to checkpoint files that were used, by name.
    """

    def __init__(self, weights: Mapping[str, WeightRef]) -> None:
        self.mapped: dict[str, MappedRef] = {}
        self._weights = weights
        self._made: dict[Any, op.Constant] = {}
        self._places: dict[Place, op.Constant] = {}

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
            made = self._over_file(name, ref) if isinstance(ref, CheckpointRef) else _over_tensor(name, ref.tensor)
            made.set_friendly_name(name)
            self._made[key] = made
        return self._made[key]

    def _over_file(self, name: str, ref: CheckpointRef) -> op.Constant:
        place = _place(name, ref)
        if ref.length == 0:
            return op.Constant(place.kind, list(place.shape), [])
        if place not in self._places:
            self._map(ref.file)
        constant = self._places[place]
        self.mapped[name] = MappedRef(ref.file, ref.key, ref.offset, ref.length, ref.dtype, ref.shape, constant)
        return constant

    def _map(self, file: Path) -> None:
        """Map all weights that lie in one file at once."""
        refs = {name: ref for name, ref in self._weights.items() if isinstance(ref, CheckpointRef) and ref.length}
        places = {_place(name, ref) for name, ref in refs.items() if ref.file == file and ref.dtype in PORT_TYPES}
        self._places.update(map_file(file, places))


def _identity(ref: WeightRef) -> Any:
    if isinstance(ref, CheckpointRef):
        return ref.file, ref.offset, ref.dtype, ref.shape
    tensor: torch.Tensor = ref.tensor
    return tensor.data_ptr(), ref.dtype, ref.shape, tensor.stride(), id(tensor) if tensor.numel() == 0 else 0


def _place(name: str, ref: CheckpointRef) -> Place:
    """Where a reference lies."""
    return Place(ref.file, ref.offset, ref.length, _type(name, ref.dtype), tuple(ref.shape))


def _over_tensor(name: str, tensor: torch.Tensor) -> op.Constant:
    if tensor.is_meta:
        raise LoweringError(f"The weight {name} was never loaded and has no file to read it from.")
    tensor = tensor.detach().cpu().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    if carrier := _CARRIERS.get(dtype):
        array = tensor.view(getattr(torch, carrier)).numpy()
        # A copy: a constant made from a `Tensor` does not keep the array alive (openvino 2026.4.1: a crash when the memory
        # went away before the model was written), and numpy has no such element to share as an array.
        return op.Constant(Tensor(array, list(array.shape), _type(name, dtype)), shared_memory=False)
    return op.Constant(tensor.numpy(), shared_memory=True)


def _type(name: str, dtype: str) -> Any:
    if dtype not in PORT_TYPES:
        raise LoweringError(f"The weight {name} is {dtype}, which OpenVINO cannot hold; convert the model first.")
    return PORT_TYPES[dtype]
