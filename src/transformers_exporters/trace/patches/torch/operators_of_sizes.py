"""`abs(n)`, `n & 3`, `n >> 1`, `n << 1` and `n ** 2` of sizes, by the arithmetic that every engine has for numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ....workarounds import Workaround

_LARGEST_POWER = 8


def by_arithmetic(original: Callable[..., Any]) -> Callable[..., Any]:
    """An operator of `torch.SymInt`; what no arithmetic stands for is left as it is."""
    written: Callable[..., Any] = next(
        way for name, way in _WRITTEN.items() if getattr(torch.SymInt, f"__{name}__") is original
    )

    @functools.wraps(original)
    def operator(number: Any, *others: Any) -> Any:
        result = written(number, *others)
        return original(number, *others) if result is None else result

    return operator


def _absolute(number: Any) -> Any:
    return torch.sym_max(number, -number)


def _last_bits(number: Any, mask: Any) -> Any:
    """`n & 7`: what is left of eights."""
    return number % (mask + 1) if type(mask) is int and mask >= 0 and mask & (mask + 1) == 0 else None


def _down(number: Any, bits: Any) -> Any:
    return number // 2**bits if type(bits) is int else None


def _up(number: Any, bits: Any) -> Any:
    return number * 2**bits if type(bits) is int else None


def _power(number: Any, power: Any) -> Any:
    whole = type(power) is int and 1 <= power <= _LARGEST_POWER
    return functools.reduce(lambda product, _: product * number, range(power - 1), number) if whole else None


_WRITTEN: dict[str, Callable[..., Any]] = {
    "abs": _absolute,
    "and": _last_bits,
    "rand": _last_bits,
    "rshift": _down,
    "lshift": _up,
    "pow": _power,
}

WORKAROUND = Workaround(
    reason="torch.export.save, OpenVINO and ExecuTorch have no `abs` of a size, ONNX no `&` and `>>`; OpenVINO made a yes or no of "
    "`n & 3`, ExecuTorch has no `**`.",
    upstream="none: no report found; torch 2.13, onnxscript 0.7.2, openvino 2026.4.1, executorch 1.5.1.",
    targets=tuple(f"torch:SymInt.__{name}__" for name in _WRITTEN),
    apply=by_arithmetic,
)
