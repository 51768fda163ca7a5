"""aten → executorch's edge dialect, in one decomposition and one walk.

`executorch.exir.to_edge` does the same in a dozen walks, each of which computes every fake value again; with symbolic
shapes that is most of an export's time (two-layer BERT: 2.6 of 6.2 s). Its per-operator passes all end in
`super().call_operator(...)`, so as bases of one class they hand each operator down the line in a single walk.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.dialects.edge._ops import EdgeOpOverload
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
from executorch.exir.passes.remove_graph_asserts_pass import RemoveNonCoreAtenOpGraphAssertsPass
from executorch.exir.passes.remove_mixed_type_operators import RemoveMixedTypeOperators
from executorch.exir.passes.remove_unused_parameters_pass import remove_unused_parameters_pass
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import ReplaceBrokenOpsWithFunctionalOpsPass
from executorch.exir.program._program import _get_updated_graph_signature, lift_constant_tensor_pass
from executorch.exir.tracer import _default_decomposition_table
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram
from torch.export.decomp_utils import CustomDecompTable

from ...repair.decompose import decompose
from ...repair.meta_keys import makes_sizes, meta_key, size_key
from .borders import order_input_specs
from .insertion import Inserter, replace
from .layout import as_row_major

_aten = torch.ops.aten


class _UnsafeViews(ExportPass):
    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """`_unsafe_view` is a view whose name says that nobody else reads the source."""
        return super().call_operator(_aten.view.default if op is _aten._unsafe_view.default else op, args, kwargs, meta)


class _NoFormats(ExportPass):
    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """Nobody asks for another memory format than row-major, as the decomposition of bicubic resizing does."""
        if kwargs.get("memory_format") not in (None, torch.preserve_format):
            kwargs = {**kwargs, "memory_format": torch.contiguous_format}
        return super().call_operator(op, args, kwargs, meta)


class _ToEdge(
    _UnsafeViews,
    _NoFormats,
    NormalizeTransposePass,
    ReplaceBrokenOpsWithFunctionalOpsPass,
    ScalarToTensorPass,
    SymToTensorPass,
    RemoveMixedTypeOperators,
    OpReplacePass,
    MemoryFormatOpsPass,
):
    """executorch's passes per operator, in its own order: views copy, scalars and sizes are tensors, dtypes agree."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        super().__init__()
        self._remembering = _Remembering(graph)

    def _fx(self, kind: str, target: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        self.interpreter = self._remembering  # a walk brings an interpreter of its own
        self._remembering.traced = meta.data.get("val")
        return super()._fx(kind, target, args, kwargs, meta)


class _Remembering(torch.fx.Interpreter):
    """Computes the fake value of each kind of call once: the layers of a model repeat them.

    Attributes:
        traced: What the trace found for the next call. Sizes that are data keep their symbols by it.
    """

    def __init__(self, graph: torch.fx.Graph) -> None:
        """Starts with the values that `graph` has."""
        super().__init__(torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()))
        self.traced: Any = None
        self._known: dict[Hashable, Any] = {}
        self._views: dict[Hashable, Any] = {}
        for node in graph.nodes:
            if node.op == "call_function" and _has_lasting_value(node.target) and "val" in node.meta:
                values = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
                self._known.setdefault((node.target, meta_key(values)), node.meta["val"])
                if node.target in _COPIES:
                    self._views.setdefault(_view_key(_COPIES[node.target], *values[0]), node.meta["val"].shape)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What the call gives, in row-major memory: kernels read and write what the plan says, and XNNPACK nothing else."""
        return pytree.tree_map_only(torch.Tensor, as_row_major, self._value(target, args, kwargs))

    def _value(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A fake value says nothing but shape and dtype, so equal calls may share theirs, unless a size is new."""
        op = target._op if isinstance(target, EdgeOpOverload) else target
        if not _has_lasting_value(op):
            kept = makes_sizes(op) and self.traced is not None
            return self.traced if kept else super().call_function(target, args, kwargs)
        if op in _COPIES and not kwargs and (view := _view_key(op, *args)) in self._views:
            # torch would prove first that the sizes fit; Swin's windows make that most of its export. Where a slice ends,
            # and whether a place is there, is a proof, too, and none if the size is data.
            return args[0].new_empty(self._views[view])
        key = (op, meta_key((args, kwargs)))
        if key not in self._known:
            self._known[key] = super().call_function(target, args, kwargs)
        return self._known[key]


def _has_lasting_value(op: Any) -> bool:
    """Whether every call with equal arguments gives an equal fake value: no fresh symbol for a size that data decides."""
    return isinstance(op, torch._ops.OpOverload) and not op._schema.is_mutable and not makes_sizes(op)


def _view_key(op: Any, source: torch.Tensor, *rest: Any) -> Hashable:
    """Strides do not count: a copy is made whatever the source's are."""
    return (op, tuple(map(size_key, source.shape)), meta_key(pytree.tree_leaves(rest)))


_COPIES = {
    _aten.view.default: _aten.view_copy.default,
    _aten._unsafe_view.default: _aten.view_copy.default,
    _aten.view_copy.default: _aten.view_copy.default,
    _aten.slice.Tensor: _aten.slice_copy.Tensor,
    _aten.slice_copy.Tensor: _aten.slice_copy.Tensor,
    _aten.select.int: _aten.select_copy.int,
    _aten.select_copy.int: _aten.select_copy.int,
}


def drop_empty_pieces(graph: torch.fx.Graph) -> None:
    """Join tensors without those that are empty at any size; where all are, the result is a new tensor.

    executorch's `PruneEmptyTensorsPass` makes that one of the traced sizes (1.5.1), which an open axis has not.
    """
    for node in graph.find_nodes(op="call_function", target=_aten.cat.default):
        pieces: Any = node.args[0]
        kept = [piece for piece in pieces if 0 not in [s for s in piece.meta["val"].shape if isinstance(s, int)]]
        if 0 < len(kept) < len(pieces):
            node.args = (kept, *node.args[1:])
        elif not kept:
            replace(node, _nothing(node))
    graph.eliminate_dead_code()


def _nothing(joined: torch.fx.Node) -> torch.fx.Node:
    """An empty tensor of the shape and dtype of a join of empty ones."""
    value, insert = joined.meta["val"], Inserter(joined)
    pieces: Any = [piece for piece in joined.args[0] if piece.meta["val"].dim() == value.dim()]
    axis = (joined.args[1] if len(joined.args) > 1 else joined.kwargs.get("dim", 0)) % value.dim()
    sizes = [insert.size(pieces[0], i) for i in range(value.dim())]
    if isinstance(value.shape[axis], int):
        sizes[axis] = value.shape[axis]
    else:
        sizes[axis] = functools.reduce(
            lambda a, b: insert.call(operator.add, a, b), [insert.size(p, axis) for p in pieces]
        )
    return insert.call(_aten.full.default, sizes, 0, dtype=value.dtype)


def _decompositions(whole: Sequence[Any]) -> dict[Any, Any]:
    table: Any = _default_decomposition_table()
    for op in whole:
        table.pop(op, None)
    return table.materialize() if isinstance(table, CustomDecompTable) else dict(table)


def to_edge_program(program: ExportedProgram, whole: Sequence[Any]) -> EdgeProgramManager:
    """Decompose a traced graph and say it in the edge dialect.

    Args:
        program: The traced graph.
        whole: aten operators that are not decomposed.
    """
    config = EdgeCompileConfig(_check_ir_validity=False, preserve_ops=list(whole))
    program = remove_unused_parameters_pass(decompose(program, _decompositions(whole), whole))
    module = program.graph_module
    with module._set_replace_hook(program.graph_signature.get_replace_hook()):
        drop_empty_pieces(module.graph)
    for each in (RemoveNonCoreAtenOpGraphAssertsPass(), _ToEdge(program.graph)):
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
    edge = convert_constant_dim_order_pass(order_input_specs(lift_constant_tensor_pass(edge)))
    for each in (dead_code_elimination_pass, DebugHandleGeneratorPass()):
        each(edge.graph_module)
    return EdgeProgramManager(edge, compile_config=config)
