"""Operators that XNNPACK computes and executorch's table does not know, or knows only for fixed sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from executorch.backends.xnnpack._passes.channels_last_tagged_reshape_pass import ChannelsLastTaggedReshapePass
from executorch.backends.xnnpack._passes.fuse_activation_pass import FuseActivationPass
from executorch.backends.xnnpack.operators.node_visitor import NodeVisitor
from executorch.backends.xnnpack.operators.quant_params import QuantParams
from executorch.backends.xnnpack.serialization.xnnpack_graph_schema import (
    XNNBatchMatrixMultiply,
    XNNFullyConnected,
    XNNGraph,
    XNNStaticSlice,
    XNode,
)
from executorch.backends.xnnpack.utils.utils import PERM_NHWC_TO_NCHW
from executorch.backends.xnnpack.utils.xnnpack_constants import XNN_INVALID_VALUE_ID
from torch.export import ExportedProgram

from .ops import has_quantized_weight_only


def own_visitors(
    program: ExportedProgram, externals: Mapping[torch.fx.Node, Any], store: Any, others: Mapping[str, Any]
) -> dict[str, Any]:
    """A visitor for each operator of this file, by the operator's name.

    Args:
        program: The part of the graph.
        externals: Its inputs and outputs.
        store: Where weights go.
        others: executorch's own visitors.
    """
    made = {
        visitor.target: visitor(program, externals, store) for visitor in (MatmulVisitor, SliceVisitor, LinearVisitor)
    }
    made[LinearVisitor.target].other = others[LinearVisitor.target]
    return made


class MatmulVisitor(NodeVisitor):  # executorch is untyped
    """`batched_matmul` (see `ops.py`)."""

    target = "transformers_exporters.batched_matmul.default"

    def define_node(
        self, node: torch.fx.Node, xnn_graph: XNNGraph, vals_to_ids: dict[torch.fx.Node, int], debug_handle: int
    ) -> None:
        """Append the node to `xnn_graph`."""
        self.define_nodes_tensor_inputs_outputs(node, xnn_graph, vals_to_ids)
        left, right = node.args[:2]
        product = XNNBatchMatrixMultiply(
            input1_id=vals_to_ids[left], input2_id=vals_to_ids[right], output_id=vals_to_ids[node], flags=0
        )
        xnn_graph.xnodes.append(XNode(xnode_union=product, debug_handle=debug_handle))


class SliceVisitor(NodeVisitor):
    """A step-1 slice of a fixed axis; the other axes may be dynamic (size 0: all of the axis)."""

    target = "aten.slice_copy.Tensor"

    def define_node(
        self, node: torch.fx.Node, xnn_graph: XNNGraph, vals_to_ids: dict[torch.fx.Node, int], debug_handle: int
    ) -> None:
        """Append the node to `xnn_graph`."""
        self.define_nodes_tensor_inputs_outputs(node, xnn_graph, vals_to_ids)
        source = node.args[0]
        rank: int = source.meta["val"].dim()
        axis: Any = (node.args[1] if len(node.args) > 1 else 0) % rank
        start = (node.args[2] if len(node.args) > 2 else 0) or 0
        width = source.meta["val"].shape[axis]
        offsets, sizes = [0] * rank, [0] * rank
        place = PERM_NHWC_TO_NCHW[axis] if ChannelsLastTaggedReshapePass.is_nhwc_node(node) else axis
        offsets[place] = start + width if start < 0 else start  # type: ignore[assignment]
        sizes[place] = node.meta["val"].shape[axis]
        cut = XNNStaticSlice(
            num_dims=rank,
            offsets=offsets,
            sizes=sizes,
            input_id=vals_to_ids[source],
            output_id=vals_to_ids[node],
            flags=0,
        )
        xnn_graph.xnodes.append(XNode(xnode_union=cut, debug_handle=debug_handle))


class LinearVisitor(NodeVisitor):
    """A product; executorch's own visitor wants inputs and weights both quantized or both not.

    Attributes:
        other: executorch's own.
    """

    target = "aten.linear.default"
    other: NodeVisitor

    def define_node(
        self, node: torch.fx.Node, xnn_graph: XNNGraph, vals_to_ids: dict[torch.fx.Node, int], debug_handle: int
    ) -> None:
        """Append the node to `xnn_graph`."""
        if not has_quantized_weight_only(node):
            self.other.define_node(node, xnn_graph, vals_to_ids, debug_handle)
            return
        inputs, weight = node.args[:2]  # `rewrites.quantized_weights` took the bias out
        self.define_tensor(inputs, xnn_graph, vals_to_ids)
        numbers = QuantParams.from_weights(weight, self._exported_program)
        self.define_tensor(weight, xnn_graph, vals_to_ids, quant_params=numbers)
        self.define_tensor(node, xnn_graph, vals_to_ids)
        product = XNNFullyConnected(
            input1_id=vals_to_ids[inputs],
            filter_id=vals_to_ids[weight],
            bias_id=XNN_INVALID_VALUE_ID,
            output_id=vals_to_ids[node],
            flags=0,
        )
        activation = FuseActivationPass.get_fused_activation(node)
        xnn_graph.xnodes.append(XNode(xnode_union=product, debug_handle=debug_handle, output_min_max=activation))
