"""aten → executorch's edge dialect, in one decomposition and one walk.

`executorch.exir.to_edge` does the same in a dozen walks, each of which computes every fake value again; with symbolic
shapes that is most of an export's time (two-layer BERT: 2.6 of 6.2 s). Its per-operator passes all end in
`super().call_operator(...)`, so as bases of one class they hand each operator down the line in a single walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.pass_base import ExportPass
from executorch.exir.passes import (
    DebugHandleGeneratorPass,
    OpReplacePass,
    ScalarToTensorPass,
    SymToTensorPass,
    dead_code_elimination_pass,
)
from executorch.exir.passes.convert_constant_dim_order_pass import convert_constant_dim_order_pass
from executorch.exir.passes.memory_format_ops_pass import MemoryFormatOpsPass
from executorch.exir.passes.normalize_transpose_pass import NormalizeTransposePass
from executorch.exir.passes.prune_empty_tensors_pass import PruneEmptyTensorsPass
from executorch.exir.passes.remove_graph_asserts_pass import RemoveNonCoreAtenOpGraphAssertsPass
from executorch.exir.passes.remove_mixed_type_operators import RemoveMixedTypeOperators
from executorch.exir.passes.remove_unused_parameters_pass import remove_unused_parameters_pass
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import ReplaceBrokenOpsWithFunctionalOpsPass
from executorch.exir.program._program import _get_updated_graph_signature, lift_constant_tensor_pass
from executorch.exir.tracer import _default_decomposition_table
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram

_aten = torch.ops.aten


class _UnsafeViews(ExportPass):
    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """`_unsafe_view` is a view whose name says that nobody else reads the source."""
        return super().call_operator(_aten.view.default if op is _aten._unsafe_view.default else op, args, kwargs, meta)


class _ToEdge(
    _UnsafeViews,
    NormalizeTransposePass,
    ReplaceBrokenOpsWithFunctionalOpsPass,
    ScalarToTensorPass,
    SymToTensorPass,
    RemoveMixedTypeOperators,
    OpReplacePass,
    MemoryFormatOpsPass,
):
    """executorch's passes per operator, in its own order: views copy, scalars and sizes are tensors, dtypes agree."""


def to_edge_program(program: ExportedProgram, whole: Sequence[Any]) -> EdgeProgramManager:
    """Decompose a traced graph and say it in the edge dialect.

    Args:
        program: The traced graph.
        whole: aten operators that are not decomposed.
    """
    config = EdgeCompileConfig(_check_ir_validity=False, preserve_ops=list(whole))
    table = _default_decomposition_table()
    for op in whole:
        table.pop(op, None)
    program = remove_unused_parameters_pass(program.run_decompositions(table))
    module = program.graph_module
    for each in (RemoveNonCoreAtenOpGraphAssertsPass(), PruneEmptyTensorsPass(), _ToEdge()):
        module = each(module).graph_module
    edge = ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=_get_updated_graph_signature(program.graph_signature, module),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=[EXIREdgeDialectVerifier(edge_compile_config=config, class_only=True, preserve_ops=list(whole))],
    )
    edge = convert_constant_dim_order_pass(lift_constant_tensor_pass(edge))
    for each in (dead_code_elimination_pass, DebugHandleGeneratorPass()):
        each(edge.graph_module)
    return EdgeProgramManager(edge, compile_config=config)
