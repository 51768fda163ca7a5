"""Keep batched matrix products whole."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...insertion import Inserter, replace
from ..ops import BATCHED_MATMUL, fits_batched_matmul


def apply(program: ExportedProgram) -> int:
    """Turn `matmul` and `bmm` of two float32 activations into one XNNPACK product; returns how many."""
    count = 0
    for op in (torch.ops.aten.matmul.default, torch.ops.aten.bmm.default):
        for node in program.graph.find_nodes(op="call_function", target=op):
            left, right = node.args
            if isinstance(left, Node) and isinstance(right, Node) and fits_batched_matmul(left, right):
                replace(node, Inserter(node).call(BATCHED_MATMUL, left, right))
                count += 1
    return count
