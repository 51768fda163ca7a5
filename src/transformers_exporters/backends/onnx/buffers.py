"""Memory that ONNX Runtime reads and writes in place: numpy arrays, torch tensors and OrtValues, on CPU or CUDA."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError, MissingBackendError

__all__ = ["ELEMENT_TYPES", "Buffer", "array_of", "describe_buffer", "numpy_dtype", "readable_array"]

#: dtype name -> ONNX's `TensorProto.DataType`.
ELEMENT_TYPES: Mapping[str, int] = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}

_NUMPY_NAMES = {number: name for name, number in ELEMENT_TYPES.items()}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Numpy's dtype; those that numpy lacks come from `ml_dtypes`. Raises `MissingBackendError` without that package."""
    if name != "bfloat16" and not name.startswith("float8"):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingBackendError(f"{name} arrays need the package ml_dtypes: run pip install ml_dtypes.") from error
    return np.dtype(getattr(ml_dtypes, name))


def readable_array(array: Any) -> np.ndarray[Any, Any]:
    """The array, C-contiguous, under a dtype that onnxruntime's binding can read (it knows none of ml_dtypes')."""
    array = np.asarray(array, order="C")
    return array if array.dtype.isbuiltin == 1 else array.view(f"uint{8 * array.itemsize}")


class _Memory:
    """Lets numpy look at an OrtValue's memory, and keeps the OrtValue alive as long as any such array lives."""

    def __init__(self, value: Any, size: int) -> None:
        self.value = value
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (value.data_ptr(), False)}


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """An OrtValue as an array of its own dtype: on its memory where that is the CPU's, else a copy."""
    if value.device_name() != "cpu":
        copied: np.ndarray[Any, Any] = value.numpy()
        return copied
    dtype = numpy_dtype(_NUMPY_NAMES[value.element_type()])
    shape = tuple(value.shape())
    size = value.tensor_size_in_bytes()
    if size == 0:
        return np.empty(shape, dtype)
    return np.asarray(_Memory(value, size)).view(dtype).reshape(shape)


@dataclass(frozen=True)
class Buffer:
    """Where a buffer is and what it holds. `owner` is the caller's object, which owns the memory."""

    owner: Any
    address: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    device_id: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize

    def overwrite(self, array: np.ndarray[Any, Any]) -> None:
        """Copy `array`, of equal dtype and shape, into the buffer."""
        if isinstance(self.owner, np.ndarray):
            np.copyto(self.owner, array)
        elif hasattr(self.owner, "update_inplace"):
            self.owner.update_inplace(readable_array(array))
        else:
            from ...runtime.torch_arrays import to_torch

            self.owner.copy_(to_torch(array))


def describe_buffer(name: str, owner: Any) -> Buffer:
    """Look at a numpy array, a torch tensor or an OrtValue. Raises `InputError` if it is read-only or has gaps."""
    if isinstance(owner, np.ndarray):
        if not (owner.flags.c_contiguous and owner.flags.writeable):
            raise InputError(f"The buffer of {name} must be writeable and C-contiguous; pass a copy of the array.")
        return Buffer(owner, owner.ctypes.data, owner.shape, owner.dtype.name, "cpu", 0)
    if hasattr(owner, "update_inplace"):  # onnxruntime.OrtValue
        dtype = _NUMPY_NAMES[owner.element_type()]
        return Buffer(owner, owner.data_ptr(), tuple(owner.shape()), dtype, owner.device_name(), 0)
    if hasattr(owner, "is_contiguous"):  # torch.Tensor
        if not owner.is_contiguous():
            raise InputError(f"The buffer of {name} must be contiguous; pass tensor.contiguous().")
        dtype = str(owner.dtype).removeprefix("torch.")
        return Buffer(owner, owner.data_ptr(), tuple(owner.shape), dtype, owner.device.type, owner.device.index or 0)
    raise InputError(f"The buffer of {name} must be a numpy array, a torch tensor or an OrtValue, not {type(owner)}.")
