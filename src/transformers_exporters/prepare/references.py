"""Weights that lie in a checkpoint file: map them, and remember where they lie."""

from __future__ import annotations

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ..artifact.weights import CheckpointRef, TensorRef, WeightRef

_CHECKPOINTS: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def remember(tensor: torch.Tensor, reference: CheckpointRef) -> None:
    """Note that a tensor's values are those of a checkpoint file."""
    _CHECKPOINTS[tensor] = reference


def is_referenced(model: torch.nn.Module) -> bool:
    """Whether any of the model's weights lies in a checkpoint file or nowhere (`meta`)."""
    return any(tensor.device.type == "meta" or tensor in _CHECKPOINTS for tensor in model.parameters())


def reference_of(tensor: torch.Tensor) -> WeightRef:
    """Where a tensor's values are."""
    known: CheckpointRef | None = _CHECKPOINTS.get(tensor)
    if known is not None:
        return known
    return TensorRef(tensor.detach(), str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))


def mapped(reference: CheckpointRef) -> torch.Tensor:
    """A tensor over the bytes of the file: the system reads a page when it is first touched."""
    storage = torch.UntypedStorage.from_file(str(reference.file), False, reference.offset + reference.length)
    flat = torch.empty(0, dtype=torch.uint8).set_(storage)  # type: ignore[arg-type]
    values: torch.Tensor = flat[reference.offset :].view(getattr(torch, reference.dtype)).view(reference.shape)
    return values
