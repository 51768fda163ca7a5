"""Run-time assertions of a trace: no engine has them, and some of them are wrong."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from ...workarounds import Workaround
from ..assumed_output import is_assumed

_ASSERTIONS = frozenset(
    getattr(torch.ops.aten, name).default
    for name in (
        "_assert_async",
        "_assert_scalar",
        "_assert_tensor_metadata",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
    )
) | {torch.ops.aten._assert_async.msg}


def drop_assertions(program: ExportedProgram) -> int:
    """Erase the assertions and whatever was computed for them alone; what a graph may be fed is its session's to check."""
    graph, changed = program.graph, 0
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node.target in _ASSERTIONS and not node.users and not is_assumed(node):
            graph.erase_node(node)
            changed += 1
    if changed:
        graph.eliminate_dead_code()
        program.graph_module.recompile()
    return changed


WORKAROUND = Workaround(
    reason="A check on values (`torch._check`, the count of image tokens) reaches the graph as ops that ONNX, OpenVINO and "
    "ExecuTorch lack; a size that the trace only assumed to be at least 2 is asserted as such; seen in LLaVA and Qwen2-VL.",
    upstream="none: torch.export records assertions for its own runtime.",
    targets=("aten._assert_async.msg", "aten._assert_scalar.default", "aten._assert_tensor_metadata.default"),
    apply=drop_assertions,
)
