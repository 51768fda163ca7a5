"""Group and instance norm from what is left of the mean."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround

_GROUP_NORM = torch.ops.aten.group_norm.default
_INSTANCE_NORM = torch.ops.aten.instance_norm.default


def _group_norm(
    x: Tensor,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    _cudnn: bool = True,
) -> Tensor:
    """x: [batch, channels, ...]; weight and bias: [channels]."""
    flat = x.reshape(x.shape[0], groups, -1)
    centred = flat - flat.mean(-1, keepdim=True)
    normed = centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + eps)
    normed = normed.reshape(x.shape)
    own = [-1] + [1] * (x.dim() - 2)
    if weight is not None:
        normed = normed * weight.reshape(own)
    return normed if bias is None else normed + bias.reshape(own)


def _instance_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    _mean: Any,
    _var: Any,
    _own: bool,
    _momentum: float,
    eps: float,
    _: Any,
) -> Tensor:
    return _group_norm(x, x.shape[1], weight, bias, eps)


def apply(program: ExportedProgram) -> int:
    groups = program.graph.find_nodes(op="call_function", target=_GROUP_NORM)
    instances = program.graph.find_nodes(op="call_function", target=_INSTANCE_NORM)
    instances = [node for node in instances if node.args[5]]  # by the statistics of its input
    for nodes, function in (groups, _group_norm), (instances, _instance_norm):
        for node in nodes:
            substitute(node, inline(node, function, node.args, node.kwargs))
    return len(groups) + len(instances)


WORKAROUND = Workaround(
    reason="ExecuTorch's kernel takes the variance as the mean of the squares without the square of the mean, which is "
    "rounding where values are nearly equal and not small: a tenth wrong at 100 ± 0.1, and NaN below zero.",
    upstream="none: no report found; executorch 1.5.1, kernels/portable/cpu/op_native_group_norm.cpp",
    targets=(str(_GROUP_NORM), str(_INSTANCE_NORM)),
    apply=apply,
)
