"""Whole numbers that OpenVINO cannot hold."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ...errors import LoweringError
from ...repair.constant_values import constant_value, constants_of
from ...repair.source_line import source_line

_MOST = 2**31 - 1


def check_whole_numbers(program: ExportedProgram, component: str) -> None:
    """Refuse products with constants beyond 32 bits: the CPU plugin (2026.4) computes int64 as int32.

    What only marks a place (the largest int64 in a mask) is cut off to the largest int32 and serves as well.

    Raises:
        LoweringError: For the first such product; names the component and the model's source line.
    """
    constants = constants_of(program)
    for node in program.graph.nodes:
        if node.target is not torch.ops.aten.mul.Tensor or node.meta["val"].dtype is not torch.int64:
            continue
        for factor in (arg for arg in node.args if isinstance(arg, Node)):
            value = constant_value(factor, constants)
            if value is not None and value.numel() and int(value.abs().max()) > _MOST:
                raise LoweringError(
                    f"OpenVINO computes whole numbers in 32 bits, {component!r} multiplies with {int(value.abs().max())} "
                    f"(at {source_line(node)}); export it to ONNX or ExecuTorch."
                )
