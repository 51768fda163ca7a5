"""Weights that lie in a checkpoint file: map them, and remember where they lie."""

from __future__ import annotations

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
    storage = torch.UntypedStorage.from_file(str(reference.file), False, reference.offset + reference.length)
    flat = torch.empty(0, dtype=torch.uint8).set_(storage)  # type: ignore[arg-type]
    values: torch.Tensor = flat[reference.offset :].view(getattr(torch, reference.dtype)).view(reference.shape)
    return values
