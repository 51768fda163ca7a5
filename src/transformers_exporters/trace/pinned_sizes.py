"""Sizes for which a trace holds, where it compared something that follows from them: `(frames - 1)//4 + 1 == 13`.

A loop over the steps of an LSTM, behind convolutions with strides, pins its own length and not the input's: torch.export
notes the comparison as a guard, which an artifact has not, and the axis stays open by name.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch import SymInt
from torch.export import ExportedProgram

from ..artifact.spec import AxisRange
from .dims import shape_env_of
from .record import Traced

# Where this many sizes beyond the traced one hold, all are taken to.
_NEAR = 256

# What torch takes apart into a step for each position.
_RECURRENT = ("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")


def unrolls(program: ExportedProgram) -> bool:
    """Whether a recurrent layer with an open number of steps has results of the traced number."""
    for node in program.graph.nodes:
        if node.op == "call_function" and str(node.target) in _RECURRENT:
            steps, outputs = node.args[0].meta["val"].shape[:2], node.meta["val"][0].shape[:2]
            if any(isinstance(x, SymInt) and not isinstance(y, SymInt) for x, y in zip(steps, outputs, strict=True)):
                return True
    return False


def pinned_ranges(traced: Traced) -> dict[str, AxisRange]:
    """By name, the axes of which the equalities of the trace leave a part, and which part."""
    shape_env = shape_env_of(traced.program)
    if shape_env is None:
        return {}
    equalities: dict[sympy.Symbol, list[Any]] = {}
    for guard in shape_env.guards:
        known = shape_env.replace(guard.expr)
        if isinstance(known, sympy.Eq) and len(known.free_symbols) == 1:
            equalities.setdefault(next(iter(known.free_symbols)), []).append(known)
    found: dict[str, AxisRange] = {}
    for symbol, size in _sizes(traced.program).items():
        axis = traced.spec.axes.get(name := traced.symbols.get(str(symbol), ""))
        if axis is None or symbol not in equalities or name in found:
            continue
        low, high = _reach(functools.partial(_hold, equalities[symbol], symbol), size)
        high = min((bound for bound in (high, axis.maximum) if bound is not None), default=None)
        reached = dataclasses.replace(axis, minimum=max(low, axis.minimum), maximum=high)
        if reached != axis:
            found[name] = reached
    return found


def _sizes(program: ExportedProgram) -> dict[sympy.Symbol, int]:
    """The traced size of each symbol of an input's axis."""
    found: dict[sympy.Symbol, int] = {}
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, SymInt) and isinstance(size.node.expr, sympy.Symbol) and size.node.has_hint():
                found[size.node.expr] = int(size.node.hint)
    return found


def _hold(equalities: Sequence[Any], symbol: sympy.Symbol, size: int) -> bool:
    try:
        return all(each.xreplace({symbol: sympy.Integer(size)}) is not sympy.false for each in equalities)
    # torch's `Mod` of a negative number, or by zero: what the model would be left with at such a size
    except (AssertionError, ZeroDivisionError):
        return False


def _reach(holds: Callable[[int], bool], size: int) -> tuple[int, int | None]:
    """The sizes around `size`, in the steps of those that hold next to it, that hold; None: without an end."""
    step = next((d for d in range(1, _NEAR) if holds(size + d)), 1)
    low, high = size, size
    while low - step > 0 and holds(low - step):
        low -= step
    while holds(high + step):
        high += step
        if high > size + _NEAR * step:
            return low, None
    return low, high
