"""Find where the values of a traced program's parameters, buffers and constants are."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils.weak import WeakTensorKeyDictionary

from ..artifact.weights import CheckpointRef, TensorRef, WeightRef

# Parameters that were built without values, and the file in which their values lie.
_CHECKPOINTS: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
_HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def remember(parameter: torch.Tensor, reference: CheckpointRef) -> None:
    """Note that a parameter's values lie in a checkpoint file."""
    _CHECKPOINTS[parameter] = reference


def reference_of(tensor: torch.Tensor) -> WeightRef:
    """Where a tensor's values are."""
    known: CheckpointRef | None = _CHECKPOINTS.get(tensor)
    if known is not None:
        return known
    return TensorRef(tensor.detach(), str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))


def weight_refs(program: ExportedProgram) -> dict[str, WeightRef]:
    """References for every tensor that the program holds, by its fully qualified name."""
    references: dict[str, WeightRef] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in _HELD and spec.target is not None:
            held = program.state_dict if spec.target in program.state_dict else program.constants
            tensor = held[spec.target]
            if isinstance(tensor, torch.Tensor):
                references[spec.target] = reference_of(tensor)
    return references
