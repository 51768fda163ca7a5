"""Whole numbers beyond 2^53: engines take their powers and sums through floating-point numbers."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from ...workarounds import Workaround
from ..constant_values import constant_value, constants_of
from ..inline import inline, substitute

_aten = torch.ops.aten
#: The longest window whose products are added up one by one.
_WINDOW = 32


def keep_whole(program: ExportedProgram) -> int:
    """Compute the powers of constants here, and add up products one by one; returns how many places were changed."""
    return _compute_powers(program) + _add_products(program)


def _compute_powers(program: ExportedProgram) -> int:
    """Replace each `pow` of constant whole numbers by its values, with torch's overflow; returns how many there were."""
    constants = constants_of(program)
    changed = 0
    for node in list(program.graph.nodes):
        if node.target is not _aten.pow.Tensor_Tensor or node.meta["val"].is_floating_point():
            continue
        value = constant_value(node, constants)
        if value is None:
            continue
        numbers, shape, dtype = value.flatten().tolist(), list(value.shape), value.dtype

        def spelled(numbers: list[int] = numbers, shape: list[int] = shape, dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.cat([torch.full((1,), number, dtype=dtype) for number in numbers]).reshape(shape)

        substitute(node, inline(node, spelled, (), {}))
        changed += 1
    return changed


def _add_products(program: ExportedProgram) -> int:
    """Write the sum of a product over one short axis as additions, as far as it may be wide: it has 64 bits."""
    changed = 0
    for node in list(program.graph.nodes):
        if node.target is not _aten.sum.dim_IntList or node.kwargs:
            continue
        terms, dims, *keep = node.args
        if terms.target is not _aten.mul.Tensor or terms.meta["val"].dtype is not torch.int64 or len(dims or ()) != 1:
            continue
        length = terms.meta["val"].shape[dims[0]]
        if not isinstance(length, int) or not 1 < length <= _WINDOW:
            continue

        def added(terms: torch.Tensor, dim: int = dims[0], keep: bool = bool(keep and keep[0])) -> torch.Tensor:
            total, *others = terms.unbind(dim)
            for other in others:
                total = total + other
            return total.unsqueeze(dim) if keep else total

        substitute(node, inline(node, added, (terms,), {}))
        changed += 1
    return changed


WORKAROUND = Workaround(
    reason="ONNX Runtime and ExecuTorch take powers of whole numbers through floating-point ones, which saturate where torch "
    "wraps around, and round their sums; the n-gram hashes of BLT wrap.",
    upstream="none: no report found; seen with ONNX Runtime 1.32, `Pow` and `ReduceSum` of int64.",
    targets=("aten.pow.Tensor_Tensor", "aten.sum.dim_IntList"),
    apply=keep_whole,
)
