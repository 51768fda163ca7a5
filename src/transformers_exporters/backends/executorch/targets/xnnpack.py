"""XNNPACK: float kernels for any CPU."""

from __future__ import annotations

import torch
from executorch.exir import EdgeProgramManager
from torch.export import ExportedProgram

from ....trace.record import Traced
from ..edge import to_edge_program
from ..xnnpack import leftovers
from ..xnnpack.delegate import rename_to_runtime_id
from ..xnnpack.partition import XnnpackParts, mark_inferred_sizes
from ..xnnpack.rewrites import (
    attention,
    batch_norm,
    convolution,
    matmul,
    noops,
    norms,
    pooling,
    quantized_weights,
    scalars,
)

_aten = torch.ops.aten

#: Operators that are kept whole because XNNPACK or ExecuTorch's own library has a kernel for them.
WHOLE = (
    _aten.linear.default,
    _aten.max_pool2d.default,
    _aten.upsample_bilinear2d.vec,
    _aten.upsample_nearest2d.vec,
)


def check(traced: Traced) -> None:
    """XNNPACK takes every graph: what it does not compute runs in ExecuTorch's own kernels."""


def delegate(program: ExportedProgram) -> EdgeProgramManager:
    """Say the graph in operators that XNNPACK computes, decompose the rest once, and hand XNNPACK its share."""
    for each in (noops, attention, batch_norm, convolution, matmul, norms, pooling, quantized_weights, scalars):
        each.apply(program)
    program.graph.eliminate_dead_code()
    program.graph.lint()
    edge = to_edge_program(program, WHOLE)
    mark_inferred_sizes(edge.exported_program())
    edge = edge.to_backend(XnnpackParts())
    rename_to_runtime_id(edge.exported_program())
    leftovers.apply(edge.exported_program())
    return edge
