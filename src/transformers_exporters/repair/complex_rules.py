"""What each op computes with complex numbers, said in real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .fourier import c2c, c2r, r2c

_aten = torch.ops.aten


class Pair(NamedTuple):
    """The real and the imaginary part, of one shape."""

    real: Tensor
    imaginary: Tensor


def rule_of(target: Any) -> Callable[..., Any] | None:
    """The rule of an op, over `Pair`s, tensors and numbers; None if it has none."""
    if target in _RULES:
        return _RULES[target]
    packet = getattr(target, "_overloadpacket", None)
    return _structural(target) if packet in _STRUCTURAL else _PACKETS.get(packet)


def _as_pair(value: Any, like: Tensor) -> Pair:
    """An operand as a pair: a pair already, a real tensor, or a number."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, Tensor):
        return Pair(value, torch.zeros_like(value))
    number = complex(value)
    return Pair(torch.full_like(like, number.real), torch.full_like(like, number.imag))


def _both(a: Any, b: Any) -> tuple[Pair, Pair]:
    like = next(v.real if isinstance(v, Pair) else v for v in (a, b) if isinstance(v, Pair | Tensor))
    return _as_pair(a, like), _as_pair(b, like)


def _multiply(a: Any, b: Any) -> Pair:
    if isinstance(a, Pair) and isinstance(b, Tensor | float | int):
        return Pair(a.real * b, a.imaginary * b)
    if isinstance(b, Pair) and isinstance(a, Tensor | float | int):
        return Pair(a * b.real, a * b.imaginary)
    x, y = _both(a, b)
    return Pair(
        x.real * y.real - x.imaginary * y.imaginary,
        x.real * y.imaginary + x.imaginary * y.real,
    )


def _divide(a: Any, b: Any) -> Pair:
    if isinstance(b, Tensor | float | int):
        return Pair(a.real / b, a.imaginary / b)
    x, y = _both(a, b)
    size = y.real * y.real + y.imaginary * y.imaginary
    product = _multiply(x, Pair(y.real, -y.imaginary))
    return Pair(product.real / size, product.imaginary / size)


def _add(a: Any, b: Any, alpha: float = 1) -> Pair:
    x, y = _both(a, b)
    return Pair(torch.add(x.real, y.real, alpha=alpha), torch.add(x.imaginary, y.imaginary, alpha=alpha))


def _subtract(a: Any, b: Any, alpha: float = 1) -> Pair:
    return _add(a, b, -alpha)


def _exponential(x: Pair) -> Pair:
    size = torch.exp(x.real)
    return Pair(size * torch.cos(x.imaginary), size * torch.sin(x.imaginary))


def _cast(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`to` in its forms: between complex widths, from real to complex, or down to the real part."""
    dtype = next((v for v in (*args, kwargs.get("dtype")) if isinstance(v, torch.dtype)), None)
    if dtype is not None and not dtype.is_complex:
        return (x.real if isinstance(x, Pair) else x).to(dtype)
    pair = x if isinstance(x, Pair) else Pair(x, torch.zeros_like(x))
    if dtype is None:
        return Pair(pair.real.clone(), pair.imaginary.clone())
    return Pair(pair.real.to(dtype.to_real()), pair.imaginary.to(dtype.to_real()))


def _structural(op: Any) -> Callable[..., Any]:
    """The rule of an op that moves, joins or sums elements: the parts go the same way."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        def side(index: int) -> Any:
            pick = lambda v: v[index] if isinstance(v, Pair) else v  # noqa: E731
            own, named = pytree.tree_map(pick, (args, kwargs), is_leaf=lambda v: isinstance(v, Pair))
            return op(*own, **named)

        return Pair(side(0), side(1))

    return apply


_STRUCTURAL = {
    getattr(_aten, name)
    for name in [
        "alias",
        "cat",
        "clone",
        "contiguous",
        "detach",
        "expand",
        "flatten",
        "flip",
        "gather",
        "index",
        "index_select",
        "lift_fresh_copy",
        "mean",
        "neg",
        "permute",
        "repeat",
        "reshape",
        "resolve_conj",
        "resolve_neg",
        "roll",
        "select",
        "slice",
        "split",
        "squeeze",
        "stack",
        "sum",
        "transpose",
        "unbind",
        "unflatten",
        "unsqueeze",
        "view",
        "view_as",
        "expand_as",
        "repeat_interleave",
        "constant_pad_nd",
        "movedim",
    ]
}
_PACKETS: dict[Any, Callable[..., Any]] = {
    _aten.to: _cast,
    _aten._to_copy: _cast,
    _aten.mul: _multiply,
    _aten.div: _divide,
    _aten.add: _add,
    _aten.sub: _subtract,
}
_RULES: dict[Any, Callable[..., Any]] = {
    _aten.view_as_complex.default: lambda x: Pair(x[..., 0], x[..., 1]),
    _aten.view_as_real.default: lambda x: torch.stack(tuple(x), -1),
    _aten.complex.default: lambda real, imaginary: Pair(real.clone(), imaginary.clone()),
    _aten.polar.default: lambda size, angle: Pair(size * torch.cos(angle), size * torch.sin(angle)),
    _aten.real.default: lambda x: x.real.clone() if isinstance(x, Pair) else x.clone(),
    _aten.imag.default: lambda x: x.imaginary.clone(),
    _aten.conj.default: lambda x: Pair(x.real.clone(), -x.imaginary),
    _aten._conj.default: lambda x: Pair(x.real.clone(), -x.imaginary),
    _aten.conj_physical.default: lambda x: Pair(x.real.clone(), -x.imaginary),
    _aten.abs.default: lambda x: torch.sqrt(x.real * x.real + x.imaginary * x.imaginary),
    _aten.sym_size.int: lambda x, axis: x.real.shape[axis],
    _aten.angle.default: lambda x: torch.atan2(x.imaginary, x.real),
    _aten.exp.default: _exponential,
    _aten._fft_r2c.default: lambda *args: Pair(*r2c(*args)),
    _aten._fft_c2c.default: lambda x, *args: Pair(*c2c(*_as_pair(x, x), *args)),
    _aten._fft_c2r.default: lambda x, *args: c2r(*_as_pair(x, x), *args),
}
