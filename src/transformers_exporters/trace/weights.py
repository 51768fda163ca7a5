"""Find where the values of a traced program's parameters, buffers and constants are."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from ..artifact.weights import WeightRef
from ..prepare.references import reference_of

#: What of a program's inputs is not the caller's.
HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def weight_refs(program: ExportedProgram) -> dict[str, WeightRef]:
    """References for every tensor that the program holds, by its fully qualified name."""
    references: dict[str, WeightRef] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in HELD and spec.target is not None:
            held = program.state_dict if spec.target in program.state_dict else program.constants
            tensor = held[spec.target]
            if isinstance(tensor, torch.Tensor):
                references[spec.target] = reference_of(tensor)
    return references
