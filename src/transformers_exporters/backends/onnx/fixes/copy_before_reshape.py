"""The converter's type promotion runs the graph again with other strides than the decomposition saw."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from ....workarounds import Workaround

_PERMUTES = (torch.ops.aten.transpose.int, torch.ops.aten.permute.default, torch.ops.aten.t.default)
_RESHAPES = (torch.ops.aten.reshape.default, torch.ops.aten.view.default, torch.ops.aten.flatten.using_ints)


def copy_permuted(program: ExportedProgram) -> int:
    """Make a permuted tensor contiguous before it is reshaped; in ONNX the copy is an Identity that vanishes."""
    graph, changed = program.graph, 0
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _RESHAPES:
            continue
        source = node.args[0]
        if not isinstance(source, torch.fx.Node) or source.target not in _PERMUTES:
            continue
        with graph.inserting_before(node):
            copy = graph.call_function(
                torch.ops.aten.clone.default, (source,), {"memory_format": torch.contiguous_format}
            )
        value = source.meta["val"]
        copy.meta = {**source.meta, "val": torch.empty_like(value, memory_format=torch.contiguous_format)}
        node.replace_input_with(source, copy)
        changed += 1
    return changed


WORKAROUND = Workaround(
    reason="torch.onnx runs the decomposed graph once more to promote types, with an attention whose output is laid out "
    "differently, so that a legal view of a transpose no longer is; seen in T5.",
    upstream="none: found here with torch 2.13; InsertTypePromotion re-executes views that run_decompositions produced.",
    targets=("aten.reshape.default", "aten.view.default", "aten.flatten.using_ints"),
    apply=copy_permuted,
)
