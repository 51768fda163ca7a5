"""The number of elements of a tensor, which torch's decompositions leave as a node where an op asks for it (CHMv2)."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]


def sym_numel(self: Any) -> Any:
    """int64 []."""
    return op.Size(self)


TRANSLATION = {torch.ops.aten.sym_numel.default: sym_numel}
