"""A Conv3d without a bias goes through the general convolution."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ....repair.convolutions import unify_convolutions
from ....workarounds import Workaround


def apply(program: ExportedProgram) -> int:
    """Call `aten.convolution` where `aten.conv3d` has no bias; returns how many."""
    return unify_convolutions(program.graph, _has_no_bias)


def _has_no_bias(node: Node) -> bool:
    if node.target is not torch.ops.aten.conv3d.default:
        return False
    return (node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")) is None


WORKAROUND = Workaround(
    reason="onnxscript makes up a bias of shape [channels, 2] for a conv3d that has none, which ONNX Runtime refuses when it runs; "
    "seen in the patch embedding of Qwen2-VL.",
    upstream="none: no report found; onnxscript 0.7.2, function_libs/torch_lib/ops/core.py, aten_conv3d concatenates 2 to the bias's shape.",
    targets=("aten.conv3d.default",),
    apply=apply,
)
