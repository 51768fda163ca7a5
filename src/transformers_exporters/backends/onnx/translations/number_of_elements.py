"""The number of elements of a tensor: what the converter's own decomposition of `einsum` asks for."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18 as op

__all__ = ["TRANSLATION"]


def sym_numel(self: Any) -> Any:
    """int64 []."""
    return op.Size(self)


TRANSLATION = {torch.ops.aten.sym_numel.default: sym_numel}
