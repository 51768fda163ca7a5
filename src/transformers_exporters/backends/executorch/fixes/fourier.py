"""Fourier transforms as products with cosines and sines: ExecuTorch has no complex numbers and no general transform."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ....workarounds import Workaround
from ..insertion import Inserter, replace

_aten = torch.ops.aten
_FORWARD = {_aten.fft_fft.default, _aten.fft_fft2.default, _aten.fft_fftn.default}
_INVERSE = {_aten.fft_ifft.default, _aten.fft_ifft2.default, _aten.fft_ifftn.default}
_LAST_TWO = {_aten.fft_fft2.default, _aten.fft_ifft2.default}
_PARTS = {_aten.real.default: 0, _aten.imag.default: 1}

#: The real and imaginary part of a complex value; None is zero.
_Pair = tuple[Node | None, Node | None]


def apply(program: ExportedProgram) -> int:
    """Rewrite transforms of which only `real` and `imag` are read, chains of them included; returns how many."""
    pairs: dict[Node, _Pair] = {}
    for node in list(program.graph.nodes):
        if node.op != "call_function" or node.target not in _FORWARD | _INVERSE or not _is_readable(node):
            continue
        source = node.args[0]
        if source not in pairs and source.meta["val"].is_complex():
            continue
        axes = _axes(node)
        if axes is not None:
            pairs[node] = _transform(Inserter(node), node, pairs.get(source, (source, None)), axes)
    for node, pair in reversed(pairs.items()):
        for user in list(node.users):
            if user.target in _PARTS:
                part = pair[_PARTS[user.target]]
                insert = Inserter(user)
                replace(user, insert.call(_aten.zeros_like.default, pair[0]) if part is None else part)
        if not node.users:
            program.graph.erase_node(node)
    return len(pairs)


def _is_readable(node: Node) -> bool:
    return all(user.target in _PARTS or user.target in _FORWARD | _INVERSE for user in node.users)


def _axes(node: Node) -> list[int] | None:
    """The transformed axes; None where the transform also pads or cuts."""
    if len(node.args) > 1 and node.args[1] is not None:
        return None
    rank = node.meta["val"].dim()
    default: Any = [-2, -1] if node.target in _LAST_TWO else -1
    if node.target in (_aten.fft_fftn.default, _aten.fft_ifftn.default):
        default = list(range(rank))
    axes = node.args[2] if len(node.args) > 2 and node.args[2] is not None else default
    return [axis % rank for axis in ([axes] if isinstance(axes, int) else axes)]


def _transform(insert: Inserter, node: Node, pair: _Pair, axes: list[int]) -> _Pair:
    norm = node.args[3] if len(node.args) > 3 else node.kwargs.get("norm")
    inverse = node.target in _INVERSE
    for axis in axes:
        pair = _along(insert, pair, axis, inverse, norm or "backward")
    return pair


def _along(insert: Inserter, pair: _Pair, axis: int, inverse: bool, norm: str) -> _Pair:
    known = next(part for part in pair if part is not None)
    rank = known.meta["val"].dim()
    order = [*(i for i in range(rank) if i != axis), axis]
    back = [order.index(i) for i in range(rank)]
    cosine, sine = _matrices(insert, known, axis, inverse, norm)

    def times(part: Node | None, matrix: Node) -> Node | None:
        if part is None:
            return None
        turned = insert.call(_aten.permute.default, part, order)
        return insert.call(_aten.permute.default, insert.call(_aten.matmul.default, turned, matrix), back)

    # (a + ib)(c - is) = (ac + bs) + i(bc - as); the inverse has the other sign of s.
    plus, minus = (_aten.sub.Tensor, _aten.add.Tensor) if inverse else (_aten.add.Tensor, _aten.sub.Tensor)
    real, imaginary = pair
    return (
        _joined(insert, plus, times(real, cosine), times(imaginary, sine)),
        _joined(insert, minus, times(imaginary, cosine), times(real, sine)),
    )


def _joined(insert: Inserter, op: Any, left: Node | None, right: Node | None) -> Node | None:
    if right is None:
        return left
    if left is None:
        return right if op is _aten.add.Tensor else insert.call(_aten.neg.default, right)
    return insert.call(op, left, right)


def _matrices(insert: Inserter, like: Node, axis: int, inverse: bool, norm: str) -> tuple[Node, Node]:
    """cos and sin of 2 pi k n / N: float32 [1, N, N]. k n is reduced modulo N in whole numbers, so no digit is lost."""
    index = insert.call(_aten.arange.default, insert.size(like, axis))
    size = insert.call(_aten.add.Tensor, insert.call(_aten.slice.Tensor, index, 0, -1), 1)
    product = insert.call(_aten.mul.Tensor, insert.call(_aten.unsqueeze.default, index, 1), index)
    turns = insert.call(_aten.to.dtype, insert.call(_aten.remainder.Tensor, product, size), torch.float32)
    count = insert.call(_aten.to.dtype, size, torch.float32)
    angle = insert.call(_aten.div.Tensor, insert.call(_aten.mul.Tensor, turns, 2 * math.pi), count)
    factor = None
    if norm == "ortho":
        factor = insert.call(_aten.rsqrt.default, count)
    elif (norm == "backward") == inverse:
        factor = insert.call(_aten.reciprocal.default, count)
    matrices = []
    for op in (_aten.cos.default, _aten.sin.default):
        matrix = insert.call(op, angle)
        if factor is not None:
            matrix = insert.call(_aten.mul.Tensor, matrix, factor)
        matrices.append(insert.call(_aten.unsqueeze.default, matrix, 0))
    return matrices[0], matrices[1]


WORKAROUND = Workaround(
    reason="ExecuTorch has no kernel for complex numbers, so models that mix tokens by a Fourier transform (FNet) fail.",
    upstream="none: the portable kernels only have the transforms between real and half-complex tensors",
    targets=("aten.fft_fft", "aten.fft_fft2", "aten.fft_fftn", "aten.fft_ifft", "aten.fft_ifft2", "aten.fft_ifftn"),
    apply=apply,
)
