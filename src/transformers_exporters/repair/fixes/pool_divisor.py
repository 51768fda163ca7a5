"""A mean over windows with a divisor of its own is a plain mean, scaled."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule

from ...workarounds import Workaround
from ..convolutions import per_axis
from ..inline import inline, substitute

_aten = torch.ops.aten
#: Where the op's arguments stand: `ceil_mode`, `divisor_override`.
_CEIL, _DIVISOR = 4, 6


def scale_means(program: ExportedProgram) -> int:
    """Take the divisor out of every `avg_pool2d` whose windows are whole; returns how many there were."""
    changed = 0
    for module in program.graph_module.modules():
        for node in list(module.graph.nodes) if isinstance(module, GraphModule) else ():
            if node.target is _aten.avg_pool2d.default and len(node.args) > _DIVISOR and not node.args[_CEIL]:
                divisor = node.args[_DIVISOR]
                if divisor is not None:
                    changed += 1
                    substitute(node, inline(node, _scaled, (*node.args[:_CEIL], divisor), {}))
    return changed


def _scaled(x: Tensor, kernel: Any, stride: Any, padding: Any, divisor: int) -> Tensor:
    return _aten.avg_pool2d.default(x, kernel, stride, padding) * (prod(per_axis(kernel, 2)) / divisor)


WORKAROUND = Workaround(
    reason="ONNX's converter leaves the divisor of `avg_pool2d(..., divisor_override=n)` out, OpenVINO has none.",
    upstream="none: no report found; torch 2.13 (aten_avg_pool2d of torchlib)",
    targets=("aten.avg_pool2d.default",),
    apply=scale_means,
)
