"""Convolution over three axes as one over two: the planes under a kernel become channels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.nn import functional as F

from ....repair.convolutions import per_axis, unify_convolutions
from ....repair.inline import inline, substitute
from ....workarounds import Workaround


def _by_planes(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Tensor:
    """x: [batch, channels, depth, height, width]; weight: [out, channels / groups, depth, height, width]."""
    (sd, *s), (pd, *p), (dd, *d) = per_axis(stride, 3), per_axis(padding, 3), per_axis(dilation, 3)
    taps = weight.shape[2]
    depth = (x.shape[2] + 2 * pd - dd * (taps - 1) - 1) // sd + 1
    planes = torch.arange(depth, device=x.device).unsqueeze(1) * sd + torch.arange(taps, device=x.device) * dd - pd
    under = x[:, :, torch.clamp(planes, 0, x.shape[2] - 1)]  # [batch, channels, depth', taps, height, width]
    if pd:
        inside = (planes >= 0) & (planes < x.shape[2])
        under = torch.where(inside[:, :, None, None], under, 0.0)
    under = under.permute(0, 2, 1, 3, 4, 5)
    flat = under.reshape(-1, x.shape[1] * taps, *x.shape[3:])
    made = F.conv2d(flat, weight.flatten(1, 2), bias, s, p, d, groups)
    return made.reshape(-1, depth, *made.shape[1:]).permute(0, 2, 1, 3, 4)


def _any_by_planes(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """`aten.convolution`. A transposed one runs over an input with zeros between its entries, its kernel turned round."""
    if not transposed:
        return _by_planes(x, weight, bias, stride, padding, dilation, groups)
    steps, cut, apart, more = (per_axis(value, 3) for value in (stride, padding, dilation, output_padding))
    border: list[int] = []
    for axis in (4, 3, 2):  # `pad` counts from the last axis
        step, reach = steps[axis - 2], apart[axis - 2] * (weight.shape[axis] - 1)
        if step > 1:
            x = F.pad(x.unsqueeze(axis + 1), [0, 0] * (4 - axis) + [0, step - 1]).flatten(axis, axis + 1)
        border += [reach - cut[axis - 2], reach - cut[axis - 2] + more[axis - 2] - (step - 1)]
    kernel = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1).flip([2, 3, 4])
    return _by_planes(F.pad(x, border), kernel, bias, dilation=apart, groups=groups)


def _is_of_volumes(node: Node) -> bool:
    return str(node.target).startswith("aten.conv") and node.args[0].meta["val"].dim() == 5


def apply(program: ExportedProgram) -> int:
    unify_convolutions(program.graph, _is_of_volumes)
    found = program.graph.find_nodes(op="call_function", target=torch.ops.aten.convolution.default)
    nodes = [node for node in found if _is_of_volumes(node)]
    for node in nodes:
        substitute(node, inline(node, _any_by_planes, node.args, node.kwargs))
    return len(nodes)


WORKAROUND = Workaround(
    reason="ExecuTorch's portable convolution takes one or two axes and XNNPACK's two: a Conv3d exports and fails when it is "
    "run (error 0x12); seen in the patch embeddings of video models.",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_convolution.cpp checks for 3 or 4 axes.",
    targets=("aten.conv3d.default", "aten.conv3d.padding", "aten.conv_transpose3d.input", "aten.convolution.default"),
    apply=apply,
)
