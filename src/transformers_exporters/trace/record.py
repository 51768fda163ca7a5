"""What the trace hands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch.export import ExportedProgram

from ..artifact.spec import ComponentSpec
from ..artifact.weights import WeightRef


@dataclass(frozen=True)
class Traced:
    """One traced component.

    Attributes:
        spec: Its border. `spec.inputs[i]` is the i-th tensor placeholder among the program's user inputs,
            `spec.outputs[i]` the i-th tensor among its user outputs; ports are the final names.
        program: The traced graph. A backend must not change it: it works on a copy.
        weights: For every parameter, buffer and lifted constant of the program (its fully qualified name in
            `program.graph_signature`), where its values are. A tensor whose values were never loaded is on `meta` in
            `program.state_dict`.
        symbols: The program's symbols (`s72`) and the axis names of the spec that they stand for (`batch`).
        fired: How often each workaround fired.
        assumed: Lines of the model that decide by values of its inputs, and what they were assumed to find: the graph is
            right for inputs that give the same answers.
        samples: The tensors that were traced, by input name (sizes of the exporter's own choosing).
    """

    spec: ComponentSpec
    program: ExportedProgram
    weights: Mapping[str, WeightRef]
    symbols: Mapping[str, str] = field(default_factory=dict)
    fired: Mapping[str, int] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    samples: Mapping[str, torch.Tensor] = field(default_factory=dict)
