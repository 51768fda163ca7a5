"""Numbers that a model returns beside its tensors: left out of the graph; the artifact's structure holds them."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Node

from ....workarounds import Workaround


def without_constants(program: ExportedProgram) -> int:
    """Put None in the place of each number that the graph returns; returns how many there were."""
    output = program.graph.output_node()
    returned = output.args[0]
    assert isinstance(returned, tuple | list)
    changed = sum(value is not None and not isinstance(value, Node) for value in returned)
    if changed:
        output.args = (tuple(value if isinstance(value, Node) else None for value in returned),)
        program.graph_module.recompile()
    return changed


WORKAROUND = Workaround(
    reason="torch.onnx asks every output for its name, numbers too (Granite 4 Vision returns the layers of its features).",
    upstream="none: no report found; torch 2.13, `_handle_output_node` of torch/onnx/_internal/exporter/_core.py skips None only",
    targets=("output",),
    apply=without_constants,
)
