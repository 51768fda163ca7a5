"""A view that was legal in the trace may not be after a decomposition changed its input's strides."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from ...workarounds import Workaround


def replace_views(program: ExportedProgram) -> int:
    """Ask for the shape (`reshape`) where the graph asks for shared memory (`view`); a graph has no use for the latter."""
    changed = 0
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
            changed += 1
    return changed


WORKAROUND = Workaround(
    reason="run_decompositions re-executes `view` on tensors whose strides the decomposed attention laid out differently; "
    "seen in T5 with a fully expanded bias.",
    upstream="none: decompositions are free to change strides, so a graph that is decomposed must not hold views.",
    targets=("aten.view.default",),
    apply=replace_views,
)
