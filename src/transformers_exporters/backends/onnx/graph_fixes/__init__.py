"""Rewrites of the converted graph, in standard ONNX; one file each, with a function `apply(graph) -> int`.

The order matters: a rewrite sees what those before it made.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from . import grouped_heads, no_ops, norm_division, shared_shapes, signed_sine

__all__ = ["GRAPH_FIXES"]

#: Name of the rewrite -> function that applies it in place and returns how many places it changed.
GRAPH_FIXES: dict[str, Callable[[ir.Graph], int]] = {
    "no_ops": no_ops.apply,
    "shared_shapes": shared_shapes.apply,
    "grouped_heads": grouped_heads.apply,
    "norm_division": norm_division.apply,
    "signed_sine": signed_sine.apply,
}
