"""Padding by an amount that is or may be negative, as a padding and a cut: the kernel pads by 0 or more only."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ....trace.dims import may_be_negative
from ....workarounds import Workaround
from ..insertion import Inserter, replace

_aten = torch.ops.aten
_PADS = (_aten.pad.default, _aten.constant_pad_nd.default)


def apply(program: ExportedProgram) -> int:
    """Rewrite constant padding with an amount that is not known to be at least 0; returns how many."""
    count = 0
    for op in _PADS:
        for node in program.graph.find_nodes(op="call_function", target=op):
            mode = (
                node.args[2] if op is _aten.pad.default and len(node.args) > 2 else node.kwargs.get("mode", "constant")
            )
            if mode == "constant" and any(_may_be_negative(amount) for amount in node.args[1]):
                _rewrite(node)
                count += 1
    return count


def _may_be_negative(amount: Any) -> bool:
    return may_be_negative(amount if isinstance(amount, int) else amount.meta["val"])


def _rewrite(node: Node) -> None:
    insert = Inserter(node)
    amounts = list(node.args[1])
    value = node.kwargs.get("value", node.args[3] if len(node.args) > 3 else None)
    if node.target is _aten.constant_pad_nd.default:
        value = node.args[2] if len(node.args) > 2 else 0.0
    rank = node.meta["val"].dim()
    padded = [0] * len(amounts)
    cuts: list[tuple[int, Any, Any]] = []
    for i in range(0, len(amounts), 2):
        before, after, axis = amounts[i], amounts[i + 1], rank - 1 - i // 2
        length = node.meta["val"].shape[axis]
        if not (_may_be_negative(before) or _may_be_negative(after)):
            padded[i : i + 2] = [before, after]
        elif isinstance(length, int) and _is_zero(after):
            # `length` values in front are always enough; the last `length` of the result are the answer.
            padded[i], cuts = length, [*cuts, (axis, -length, 2**63 - 1)]
        elif isinstance(length, int) and _is_zero(before):
            padded[i + 1], cuts = length, [*cuts, (axis, 0, length)]
        else:
            low, high = (_cut(insert, amount) for amount in (before, after))
            padded[i], padded[i + 1] = _grown(insert, before), _grown(insert, after)
            end = insert.size(node.args[0], axis)
            for other, op in ((padded[i], operator.add), (padded[i + 1], operator.add), (high, operator.sub)):
                end = _whole(insert, op, end, other)
            cuts.append((axis, low, end))
    result = insert.call(_aten.constant_pad_nd.default, node.args[0], padded, 0.0 if value is None else value)
    for axis, start, stop in cuts:
        result = insert.call(_aten.slice.Tensor, result, axis, start, stop)
    replace(node, result)


def _is_zero(amount: Any) -> bool:
    return isinstance(amount, int) and amount == 0


def _grown(insert: Inserter, amount: Any) -> Any:
    return max(amount, 0) if isinstance(amount, int) else insert.call(torch.sym_max, amount, 0)


def _cut(insert: Inserter, amount: Any) -> Any:
    if isinstance(amount, int):
        return max(-amount, 0)
    return insert.call(torch.sym_max, _whole(insert, operator.sub, 0, amount), 0)


def _whole(insert: Inserter, op: Any, left: Any, right: Any) -> Any:
    """`op` of two sizes."""
    if isinstance(left, int) and isinstance(right, int):
        return op(left, right)
    return insert.call(op, left, right)


WORKAROUND = Workaround(
    reason="ExecuTorch's constant_pad_nd refuses a negative amount, which state-space models use to crop to the last steps.",
    upstream="none: documented limit of the portable kernel (kernel_ops_util.cpp: Padding values must be non-negative)",
    targets=("aten.pad", "aten.constant_pad_nd"),
    apply=apply,
)
