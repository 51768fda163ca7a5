"""Operators that XNNPACK computes and executorch's table does not know, or knows only for fixed sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from executorch.backends.xnnpack.operators.node_visitor import NodeVisitor
from executorch.backends.xnnpack.serialization.xnnpack_graph_schema import (
    XNNBatchMatrixMultiply,
    XNNGraph,
    XNNStaticSlice,
    XNode,
)
from torch.export import ExportedProgram


def own_visitors(program: ExportedProgram, externals: Mapping[torch.fx.Node, Any], store: Any) -> dict[str, Any]:
    """A visitor for each operator of this file, by the operator's name."""
    return {visitor.target: visitor(program, externals, store) for visitor in (MatmulVisitor, SliceVisitor)}


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
        offsets[axis] = start + width if start < 0 else start  # type: ignore[assignment]
        sizes[axis] = node.meta["val"].shape[axis]
        cut = XNNStaticSlice(
            num_dims=rank,
            offsets=offsets,
            sizes=sizes,
            input_id=vals_to_ids[source],
            output_id=vals_to_ids[node],
            flags=0,
        )
        xnn_graph.xnodes.append(XNode(xnode_union=cut, debug_handle=debug_handle))
