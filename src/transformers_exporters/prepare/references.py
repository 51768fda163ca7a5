"""Weights that lie in a checkpoint file: map them, and remember where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ..artifact.weights import CheckpointRef, TensorRef, WeightRef

_ELSEWHERE: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def remember(tensor: torch.Tensor, reference: WeightRef) -> None:
    """Note that a tensor's values are elsewhere: in a checkpoint file, or (a `TensorRef` on `meta`) nowhere yet."""
    _ELSEWHERE[tensor] = reference


def is_referenced(model: torch.nn.Module) -> bool:
    """Whether any of the model's weights lies in a checkpoint file or nowhere (`meta`)."""
    return any(tensor.device.type == "meta" or tensor in _ELSEWHERE for tensor in model.parameters())


def reference_of(tensor: torch.Tensor) -> WeightRef:
    """Where a tensor's values are."""
    known: WeightRef | None = _ELSEWHERE.get(tensor)
    if known is not None:
        return known
    return TensorRef(tensor.detach(), str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))


def has_values(reference: WeightRef) -> bool:
    """False for a weight of a model that was built on `meta` and never filled."""
    return isinstance(reference, CheckpointRef) or reference.tensor.device.type != "meta"


def mapped(reference: CheckpointRef) -> torch.Tensor:
    """A tensor over the bytes of the file: the system reads a page when it is first touched."""
    if reference.length == 0:
        return torch.empty(reference.shape, dtype=getattr(torch, reference.dtype))
    # Not torch's own mapping: it starts at the file's first byte, so that saving one tensor would write all before it.
    raw = np.memmap(reference.file, dtype=np.uint8, mode="c", offset=reference.offset, shape=(reference.length,))
    values: torch.Tensor = torch.from_numpy(raw).view(getattr(torch, reference.dtype)).view(reference.shape)
    return values


def memory_key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for two tensors that show the same values in memory: tied weights, and weights shared by components."""
    storage = tensor.untyped_storage().data_ptr()
    return (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def bytes_key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for two tensors whose bytes are the same range of memory, whatever shapes they give it."""
    if not tensor.is_contiguous():
        return memory_key(tensor)
    return (tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor.dtype)


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """A tensor's values as contiguous bytes, without a copy where it is contiguous on the CPU."""
    flat = tensor.detach().cpu().contiguous().flatten()
    values: Any = flat.view(torch.uint8).numpy() if flat.numel() else b""
    return memoryview(values)
