"""numpy arrays for engines whose sessions speak torch. Torch is looked up when such a session is there, never before."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

__all__ = ["to_numpy", "to_torch"]


def to_torch(array: Any) -> Any:
    """A torch tensor on the memory of a numpy array (a copy where the array is read-only); other values as they are."""
    if not isinstance(array, np.ndarray):
        return array
    # By name, because importing this room must never import torch: the session that needs it already did.
    torch = importlib.import_module("torch")
    name = array.dtype.name
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    if name == "bfloat16" or name.startswith("float8"):  # ml_dtypes, unknown to torch.from_numpy
        return torch.from_numpy(array.view(f"uint{8 * array.itemsize}")).view(getattr(torch, name))
    return torch.from_numpy(array)


def to_numpy(tensor: Any) -> Any:
    """A numpy array on the memory of a CPU tensor, else a copy of it; values that are no tensors as they are."""
    if isinstance(tensor, np.ndarray) or not hasattr(tensor, "detach"):
        return tensor
    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16" or name.startswith("float8"):
        torch, ml_dtypes = importlib.import_module("torch"), importlib.import_module("ml_dtypes")
        carrier = torch.uint16 if tensor.element_size() == 2 else torch.uint8
        return tensor.contiguous().view(carrier).numpy().view(getattr(ml_dtypes, name))
    return tensor.numpy()
