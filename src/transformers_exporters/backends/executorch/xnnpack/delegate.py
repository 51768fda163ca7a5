"""Turn one part of a graph into an XNNPACK blob.

executorch ships a delegate that does this. Ours uses its operator table and its serializer, and leaves out what costs
the time: for every part of a graph it deep-copies the part's weights and re-interprets the part under seventeen passes,
most of which look for an operator that the part does not have (two of them export a small pattern program each time).
Measured on a two-layer BERT, 23 parts: 10.5 of 31 s.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from executorch.backends.xnnpack._passes import (
    ChannelsLastTaggedReshapePass,
    Conv1dUnsqueezePass,
    ConvertToLinearPass,
    DecomposeBatchNorm,
    DecomposeConcatenate,
    DimOrderOpsRevertPass,
    FuseActivationPass,
    FuseBatchNormPass,
    PReLUReshapePass,
    RemoveGetItemPass,
    RemoveRedundantCopyPass,
    XNNPACKPassManager,
)
from executorch.backends.xnnpack.operators.node_visitor import get_node_visitors
from executorch.backends.xnnpack.serialization.xnnpack_graph_schema import ConstantDataOffset, XNNGraph
from executorch.backends.xnnpack.serialization.xnnpack_graph_serialize import (
    CONSTANT_TENSOR_ALIGNMENT,
    serialize_xnnpack_binary,
)
from executorch.backends.xnnpack.utils.utils import get_param_tensor, is_param_node
from executorch.backends.xnnpack.utils.xnnpack_constants import UINT64_MAX
from executorch.backends.xnnpack.xnnpack_preprocess import (
    XNN_VALUE_FLAG_EXTERNAL_INPUT,
    XNN_VALUE_FLAG_EXTERNAL_OUTPUT,
    ExternalMeta,
    XnnpackBackend,
)
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, CompileSpec, PreprocessResult
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.dialects._ops import ops
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from ..weight_bytes import weight_bytes
from .operators import own_visitors

#: The name under which the runtime finds XNNPACK.
RUNTIME_ID = XnnpackBackend.__name__


class _ChannelsLast(ChannelsLastTaggedReshapePass):  # executorch is untyped
    """Channels-last memory between convolutions, and row-major in front of what works along the last axes.

    executorch's own pass lets softmax run along the channels that are last in memory (1.5.1).
    """

    memory_sensitive_ops_nchw = frozenset(
        {
            *ChannelsLastTaggedReshapePass.memory_sensitive_ops_nchw,
            ops.edge.aten._softmax.default,
            ops.edge.transformers_exporters.batched_matmul.default,
        }
    )

    def _is_nhwc(self, tensor: torch.Tensor) -> bool:
        """Of a tensor with a size that is data nobody can say it; a part takes and gives row-major memory."""
        return not any(map(has_free_unbacked_symbols, tensor.shape)) and bool(super()._is_nhwc(tensor))


#: What is one when `DecomposeBatchNorm` has run.
_CONVOLUTIONS = frozenset({"convolution", "_native_batch_norm_legit_no_training"})

# A pass and the operators without which it changes nothing, in the order in which executorch runs them. What is not in
# this list either never applies to a graph that we lower (the patterns of bilinear upsampling and attention are kept
# whole before) or only saves a copy.
_PASSES: tuple[tuple[Any, frozenset[str]], ...] = (
    (DimOrderOpsRevertPass, frozenset({"_clone_dim_order", "_to_dim_order_copy"})),
    (ConvertToLinearPass, frozenset({"mm", "addmm"})),
    (FuseBatchNormPass, frozenset({"_native_batch_norm_legit_no_training"})),
    (DecomposeBatchNorm, frozenset({"_native_batch_norm_legit_no_training"})),
    (FuseActivationPass, frozenset({"relu", "hardtanh"})),
    (DecomposeConcatenate, frozenset({"wide cat"})),
    (RemoveGetItemPass, frozenset({"max_pool2d_with_indices", "max", "_native_batch_norm_legit_no_training"})),
    (Conv1dUnsqueezePass, frozenset({"convolution"})),
    (PReLUReshapePass, frozenset({"prelu"})),
    (
        _ChannelsLast,
        frozenset({"avg_pool2d", "max_pool2d", "max_pool2d_with_indices", "mean", "prelu", *_CONVOLUTIONS}),
    ),
    (RemoveRedundantCopyPass, _CONVOLUTIONS),
)


_HALVES = (torch.float16, torch.bfloat16)

#: XNNPACK joins at most so many tensors at once.
_LARGEST_CAT = 5


class LeanXnnpack(BackendDetails):
    """Serializes a part of a graph for the XNNPACK runtime. `rename_to_runtime_id` must follow."""

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """A copy of the graph over the same weights."""
        copied = copy.copy(edge_program)
        copied._graph_module = copy.deepcopy(edge_program.graph_module)
        copied._graph_signature = copy.deepcopy(edge_program.graph_signature)
        copied._state_dict = dict(edge_program.state_dict)
        copied._constants = dict(edge_program.constants)
        return copied

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Serialize `edge_program`; weights go into the named data, once each."""
        present = {_op_name(node) for node in edge_program.graph.nodes if node.op == "call_function"}
        if any(_op_name(n) == "cat" and len(n.args[0]) > _LARGEST_CAT for n in edge_program.graph.nodes):
            present.add("wide cat")
        passes = [each for each, needs in _PASSES if needs & present]
        program = edge_program
        if passes:
            program = XNNPACKPassManager(edge_program, passes=passes).transform()
        store = NamedDataStore()
        blob = _serialize(program, store)
        return PreprocessResult(
            processed_bytes=blob, debug_handle_map={}, data_store_output=store.get_named_data_store_output()
        )


def rename_to_runtime_id(program: ExportedProgram) -> int:
    """Address the parts made here to the XNNPACK runtime; returns how many there are."""
    count = 0
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if node.target is executorch_call_delegate:
                lowered = getattr(module, node.args[0].target)
                if lowered._backend_id == LeanXnnpack.__name__:
                    lowered._backend_id = RUNTIME_ID
                    count += 1
    return count


def _op_name(node: torch.fx.Node) -> str:
    """`aten.add.Tensor` -> `add`."""
    parts = getattr(node.target, "__name__", str(node.target)).split(".")
    return parts[-2] if len(parts) > 1 else parts[0]


def _serialize(program: ExportedProgram, store: NamedDataStore) -> bytes:
    externals = _externals(program)
    graph = XNNGraph(
        version="0",
        xnodes=[],
        xvalues=[],
        num_externs=len(externals),
        input_ids=[],
        output_ids=[],
        constant_data=[ConstantDataOffset(0, 0)],  # index 0 means "no constant"
    )
    known = get_node_visitors(program, externals, store)
    own = own_visitors(program, externals, store, known)
    visitors = {**known, **own}
    for visitor in (*known.values(), *own.values()):
        visitor.get_serialized_buffer_index = _by_reference(visitor, program, store)
    ids: dict[torch.fx.Node, int] = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            visitors[node.target.__name__].define_node(node, graph, ids, node.meta.get("debug_handle", 0))
    return bytes(serialize_xnnpack_binary(graph, bytearray()))


def _by_reference(visitor: Any, program: ExportedProgram, store: NamedDataStore) -> Any:
    """The visitor's method that stores a weight and returns its number, without a copy where the weight stays as it is."""
    by_value = visitor.get_serialized_buffer_index

    def index(
        node: torch.fx.Node,
        graph: XNNGraph,
        ids: dict[torch.fx.Node, int],
        convert_to_nhwc: bool,
        swap_in_out_for_weights: bool,
        quant_params: Any,
        force_fp32: bool = False,
        groups: int = 1,
    ) -> int:
        weight = None
        if not (convert_to_nhwc or swap_in_out_for_weights or quant_params) and is_param_node(program, node):
            tensor = get_param_tensor(program, node)
            if tensor.dtype == torch.float32 or (tensor.dtype in _HALVES and not force_fp32):
                weight = weight_bytes(tensor)
        if weight is None:
            return int(
                by_value(node, graph, ids, convert_to_nhwc, swap_in_out_for_weights, quant_params, force_fp32, groups)
            )
        key = weight.sha256().hex()
        graph.constant_data.append(ConstantDataOffset(offset=UINT64_MAX, size=len(weight), named_key=key))
        store.add_named_data(key, weight, alignment=CONSTANT_TENSOR_ALIGNMENT)
        return len(graph.constant_data) - 1

    return index


def _externals(program: ExportedProgram) -> dict[torch.fx.Node, ExternalMeta]:
    """The nodes that cross the part's border, numbered in the order in which the runtime passes them."""
    inputs = [n for n in program.graph.nodes if n.op == "placeholder" and not is_param_node(program, n)]
    outputs = list(program.graph.output_node().args[0])
    table = {node: ExternalMeta(i, XNN_VALUE_FLAG_EXTERNAL_INPUT) for i, node in enumerate(inputs)}
    for node in outputs:
        table[node] = ExternalMeta(len(table), XNN_VALUE_FLAG_EXTERNAL_OUTPUT)
    return table
