"""Complex tensors as pairs of reals on a last axis of size 2: rotary embeddings and Fourier transforms."""

from __future__ import annotations

from typing import Any

import torch
from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, cast, constant, shape_of


def _part(value: Output, index: int) -> Output:
    """The real (0) or imaginary (1) part."""
    return ops.gather(value, constant(index, Type.i64), constant(-1, Type.i64)).output(0)


def _pair(real: Output, imaginary: Output) -> Output:
    last = constant(-1, Type.i64)
    return ops.concat([ops.unsqueeze(real, last), ops.unsqueeze(imaginary, last)], -1).output(0)


def _of_real(value: Output) -> Output:
    return _pair(value, ops.multiply(value, constant(0, value.get_element_type())).output(0))


def _pairs(call: Call, name: str) -> Output:
    """An operand as a pair, in the result's width; a real tensor or number gets a zero imaginary part."""
    traced = call.traced(name)
    value = call.tensor(name, call.result_type) if isinstance(traced, torch.Tensor) else None
    if value is None:
        number = complex(call[name])
        return constant([number.real, number.imag], call.result_type)
    return value if traced.is_complex() else _of_real(value)


def _same(call: Call) -> Output:
    value: Output = call["self"]
    return value


def _real(call: Call) -> Output:
    return _part(call["self"], 0)


def _imag(call: Call) -> Output:
    return _part(call["self"], 1)


def _to(call: Call) -> Output:
    value: Output = call["self"]
    if not call.result.is_complex():
        value = _part(value, 0)
    elif not call.traced("self").is_complex():
        value = _of_real(cast(value, call.result_type))
    return cast(value, call.result_type)


def _make(call: Call) -> Output:
    return _pair(call["real"], call["imag"])


def _polar(call: Call) -> Output:
    length, angle = call["abs"], call["angle"]
    return _pair(ops.multiply(length, ops.cos(angle)).output(0), ops.multiply(length, ops.sin(angle)).output(0))


def _multiply(call: Call) -> Output:
    a, b = _pairs(call, "self"), _pairs(call, "other")
    (ar, ai), (br, bi) = (_part(a, 0), _part(a, 1)), (_part(b, 0), _part(b, 1))
    real = ops.subtract(ops.multiply(ar, br), ops.multiply(ai, bi)).output(0)
    return _pair(real, ops.add(ops.multiply(ar, bi), ops.multiply(ai, br)).output(0))


def _add(call: Call) -> Output:
    return ops.add(_pairs(call, "self"), _pairs(call, "other")).output(0)


def _subtract(call: Call) -> Output:
    return ops.subtract(_pairs(call, "self"), _pairs(call, "other")).output(0)


def _conjugate(call: Call) -> Output:
    value = call["self"]
    return ops.multiply(value, constant([1, -1], value.get_element_type())).output(0)


def _absolute(call: Call) -> Output:
    value = call["self"]
    squares = ops.reduce_sum(ops.multiply(value, value), constant([-1], Type.i64), False)
    return ops.sqrt(squares).output(0)


def _sizes(sizes: list[Any], extra: int) -> Output:
    parts = [
        ops.reshape(cast(s, Type.i64), constant([1], Type.i64), False).output(0)
        if isinstance(s, Output)
        else constant([s], Type.i64)
        for s in (*sizes, extra)
    ]
    return ops.concat(parts, 0).output(0)


def _view(call: Call) -> Output:
    sizes = call["size"] if "size" in call.names else call["shape"]
    return ops.reshape(call["self"], _sizes(sizes, 2), False).output(0)


def _expand(call: Call) -> Output:
    sizes = [1 if isinstance(s, int) and s == -1 else s for s in call["size"]]
    target = _sizes(sizes, 2)
    return ops.broadcast(call["self"], target, broadcast_spec="BIDIRECTIONAL").output(0)


def _axis(call: Call, name: str, extra: int = 0) -> int:
    return int(call[name]) % (call.traced("self").dim() + extra)


def _unsqueeze(call: Call) -> Output:
    return ops.unsqueeze(call["self"], constant(_axis(call, "dim", 1), Type.i64)).output(0)


def _select(call: Call) -> Output:
    return ops.gather(call["self"], call.tensor("index", Type.i64), constant(_axis(call, "dim"), Type.i64)).output(0)


def _slice(call: Call) -> Output:
    def bound(name: str, default: int) -> Output:
        value = call[name]
        if value is None:
            return constant([default], Type.i64)
        number = cast(value, Type.i64) if isinstance(value, Output) else constant(value, Type.i64)
        return ops.reshape(number, constant([1], Type.i64), False).output(0)

    axis = constant([_axis(call, "dim")], Type.i64)
    return ops.slice(call["self"], bound("start", 0), bound("end", 2**62), bound("step", 1), axis).output(0)


def _transpose(call: Call) -> Output:
    rank = call.traced("self").dim()
    order = list(range(rank + 1))
    a, b = _axis(call, "dim0"), _axis(call, "dim1")
    order[a], order[b] = order[b], order[a]
    return ops.transpose(call["self"], constant(order, Type.i64)).output(0)


def _permute(call: Call) -> Output:
    rank = call.traced("self").dim()
    return ops.transpose(call["self"], constant([int(d) % rank for d in call["dims"]] + [rank], Type.i64)).output(0)


def _scale(call: Call, value: Output, transformed: Output, dims: list[int]) -> Output:
    """Apply torch's normalisation (0: none, 1: by the root of n, 2: by n) to an unnormalised transform."""
    mode = int(call["normalization"])
    if mode == 0:
        return transformed
    kind = transformed.get_element_type()
    lengths = ops.gather(shape_of(value), constant(dims, Type.i64), constant(0, Type.i64))
    count = cast(ops.reduce_prod(lengths, constant([0], Type.i64), False).output(0), kind)
    return ops.divide(transformed, count if mode == 2 else ops.sqrt(count)).output(0)


def _fft_c2c(call: Call) -> Output:
    value = call["self"]
    dims = [int(d) % call.traced("self").dim() for d in call["dim"]]
    axes = constant(dims, Type.i64)
    if call["forward"]:
        return _scale(call, value, ops.dft(value, axes).output(0), dims)
    inverse = ops.idft(value, axes).output(0)  # divides by n already
    if int(call["normalization"]) == 2:
        return inverse
    kind = inverse.get_element_type()
    lengths = ops.gather(shape_of(value), axes, constant(0, Type.i64))
    count = cast(ops.reduce_prod(lengths, constant([0], Type.i64), False).output(0), kind)
    return ops.multiply(inverse, count if int(call["normalization"]) == 0 else ops.sqrt(count)).output(0)


def _fft_r2c(call: Call) -> Output:
    value = call["self"]
    dims = [int(d) % call.traced("self").dim() for d in call["dim"]]
    axes = constant(dims, Type.i64)
    if call["onesided"]:
        return _scale(call, value, ops.rdft(value, axes).output(0), dims)
    return _scale(call, value, ops.dft(_of_real(value), axes).output(0), dims)


def _fft_c2r(call: Call) -> Output:
    value = call["self"]
    dims = [int(d) % call.traced("self").dim() for d in call["dim"]]
    sizes = ops.reshape(call.tensor("last_dim_size", Type.i64), constant([1], Type.i64), False).output(0)
    if len(dims) > 1:
        others = ops.gather(shape_of(value), constant(dims[:-1], Type.i64), constant(0, Type.i64))
        sizes = ops.concat([others, sizes], 0).output(0)
    inverse = ops.irdft(value, constant(dims, Type.i64), sizes).output(0)  # divides by n already
    if int(call["normalization"]) == 2:
        return inverse
    kind = inverse.get_element_type()
    count = cast(ops.reduce_prod(sizes, constant([0], Type.i64), False).output(0), kind)
    return ops.multiply(inverse, count if int(call["normalization"]) == 0 else ops.sqrt(count)).output(0)


TRANSLATIONS = {
    f"complex.aten.{name}": rule
    for name, rule in {
        "view_as_real.default": _same,
        "view_as_complex.default": _same,
        "contiguous.default": _same,
        "clone.default": _same,
        "alias.default": _same,
        "detach.default": _same,
        "resolve_conj.default": _same,
        "real.default": _real,
        "imag.default": _imag,
        "to.dtype": _to,
        "to.dtype_layout": _to,
        "to.device": _to,
        "_to_copy.default": _to,
        "complex.default": _make,
        "polar.default": _polar,
        "mul.Tensor": _multiply,
        "add.Tensor": _add,
        "sub.Tensor": _subtract,
        "conj.default": _conjugate,
        "_conj.default": _conjugate,
        "conj_physical.default": _conjugate,
        "abs.default": _absolute,
        "view.default": _view,
        "reshape.default": _view,
        "expand.default": _expand,
        "unsqueeze.default": _unsqueeze,
        "select.int": _select,
        "slice.Tensor": _slice,
        "transpose.int": _transpose,
        "permute.default": _permute,
        "_fft_c2c.default": _fft_c2c,
        "_fft_r2c.default": _fft_r2c,
        "_fft_c2r.default": _fft_c2r,
    }.items()
}
