"""Sizes that the trace found constant are whole numbers, as all other constant sizes are."""

from __future__ import annotations

from typing import Any

import torch
from torch import SymInt
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.fx import GraphModule

from ...workarounds import Workaround


def number_constants(program: ExportedProgram) -> int:
    """Describe tensors with such sizes anew; returns how many there were."""
    changed = 0
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            value = node.meta.get("val")
            if isinstance(value, FakeTensor) and value.constant is None and any(map(_is_constant, value.shape)):
                sizes, strides = [_number(size) for size in value.shape], [_number(step) for step in value.stride()]
                with value.fake_mode:
                    node.meta["val"] = torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
                changed += 1
    return changed


def _is_constant(size: Any) -> bool:
    return isinstance(size, SymInt) and size.node.maybe_as_int() is not None


def _number(size: Any) -> Any:
    return size.node.maybe_as_int() if _is_constant(size) else size


WORKAROUND = Workaround(
    reason="An input's axis that turns out to be constant (the heads of a cache) keeps a symbolic size whose value is known. "
    "Whoever asks whether a size is a number is told that it is open: attention over shared heads repeated the keys of a "
    "cache of fixed size on ExecuTorch.",
    upstream="none: torch.export marks the axis and only replaces its symbol",
    targets=(),
    apply=number_constants,
)
