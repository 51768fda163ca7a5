"""A number less a tensor of another dtype: the tensor is cast first."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from ....workarounds import Workaround

_CALLS = (torch.ops.aten.rsub.Scalar, torch.ops.aten.rsub.Tensor)


def apply(program: ExportedProgram) -> int:
    """Cast the tensors that a subtraction of another dtype takes; returns how many."""
    changed = 0
    for node in list(program.graph.nodes):
        if node.target not in _CALLS:
            continue
        dtype = node.meta["val"].dtype
        for source in node.all_input_nodes:
            value = source.meta.get("val")
            if isinstance(value, torch.Tensor) and value.dtype != dtype:
                with program.graph.inserting_before(node):
                    cast = program.graph.call_function(torch.ops.aten._to_copy.default, (source,), {"dtype": dtype})
                cast.meta = {**node.meta, "val": value.to(dtype)}
                node.replace_input_with(source, cast)
                changed += 1
    return changed


WORKAROUND = Workaround(
    reason="torch.onnx decomposes `1.0 - mask` into a subtraction whose first argument is a number, and fails on it where it has to "
    "promote the mask; seen in ProphetNet.",
    upstream="https://github.com/pytorch/pytorch/issues/194381",
    targets=("aten.rsub.Scalar", "aten.rsub.Tensor"),
    apply=apply,
)
