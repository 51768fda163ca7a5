"""The tanh form of GELU as what it is made of: XNNPACK's delegate computes the exact one in its place."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ....repair.inline import inline, substitute
from ....workarounds import Workaround

_GELU = torch.ops.aten.gelu.default


def _tanh_form(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as `torch.nn.functional.gelu` documents."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def apply(program: ExportedProgram) -> int:
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_GELU):
        if node.kwargs.get("approximate", node.args[1] if len(node.args) > 1 else "none") == "tanh":
            substitute(node, inline(node, _tanh_form, node.args[:1], {}))
            count += 1
    return count


WORKAROUND = Workaround(
    reason="XNNPACK's delegate ignores `approximate` and computes the exact GELU, 4.7e-4 away; seen in every model with "
    "`gelu_pytorch_tanh` or `gelu_new` written as the op (Gemma, SigLIP, GPT-2 variants).",
    upstream="none: no report found; executorch 1.5.1, backends/xnnpack/operators/op_gelu.py reads the input only.",
    targets=("aten.gelu.default",),
    apply=apply,
)
