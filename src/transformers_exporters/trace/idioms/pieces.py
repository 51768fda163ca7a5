"""Lists of one tensor per image inside a trace: cut only where code asks for one of them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import SymInt, Tensor

from ...hf.pieces import Pieces
from ..images.packed import Lengths
from .calling import calling_line
from .repeated import Repeated, concatenated

#: A list of pieces, each laid out as rows. What that does to the pieces it does to the whole.
_ROWS = re.compile(r"(\w+)\.reshape\(-1, \1\.shape\[-1\]\) for \1 in [\w.]+\.split\(")


def cut(original: Callable[..., Any], tensor: Tensor, lengths: Lengths, dim: int) -> Any:
    """`tensor.split(lengths, dim)`, whose number of pieces stays open.

    Args:
        original: The split.
        tensor: What is split.
        lengths: How long each piece is.
        dim: Along which axis.
    """
    if dim != 0:
        return original(tensor, list(lengths), dim)
    if _ROWS.search(calling_line()):
        return (_EachPiece(tensor, lengths.tensor),)
    return Pieces(tensor, lengths.tensor.to(torch.int64), "tuple", lambda: tuple(original(tensor, list(lengths), dim)))


class _EachPiece:
    """Stands for every piece in a comprehension that lays each out as rows."""

    def __init__(self, tensor: Tensor, lengths: Tensor) -> None:
        self.shape = tensor.shape
        self._tensor = tensor
        self._lengths = lengths

    def reshape(self, *shape: Any) -> Tensor:
        rows = self._tensor.reshape(*shape)
        rows._piece_lengths = self._lengths.to(torch.int64) * math.prod(self.shape[1:-1])  # type: ignore[attr-defined]
        return rows


def joined(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.cat` that puts pieces together by leaving them uncut, and repeats a tensor that is to be there many times."""

    @functools.wraps(original)
    def cat(tensors: Any, *args: Any, **kwargs: Any) -> Tensor:
        dim = kwargs.get("dim", args[0] if args else 0)
        if isinstance(tensors, Repeated) and kwargs.keys() <= {"dim"}:
            return concatenated(tensors, dim)
        if not isinstance(tensors, Pieces):
            return original(tensors, *args, **kwargs)
        if dim in (0, -tensors.packed.dim()) and kwargs.keys() <= {"dim"} and len(args) <= 1:
            whole: Tensor = tensors.packed
            return whole
        return original(list(tensors), *args, **kwargs)

    return cat


def padded(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`pad_sequence` that lays pieces of a tensor side by side without cutting it, for any number of them."""

    @functools.wraps(original)
    def pad_sequence(
        sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
    ) -> Tensor:
        if not isinstance(sequences, Pieces) or padding_side != "right":
            return original(sequences, batch_first, padding_value, padding_side)
        whole, lengths = sequences.packed, sequences.lengths
        longest = lengths.max().item()
        torch._check(longest > 1)
        place = torch.arange(longest, device=lengths.device)
        first = lengths.cumsum(0) - lengths
        index = (first.unsqueeze(1) + place).clamp(max=whole.shape[0] - 1)
        rows = whole.index_select(0, index.flatten()).reshape(*index.shape, *whole.shape[1:])
        inside = (place < lengths.unsqueeze(1)).reshape(*index.shape, *(1,) * (whole.dim() - 1))
        rows = torch.where(inside, rows, padding_value)
        return rows if batch_first else rows.transpose(0, 1)

    return pad_sequence


def with_pieces(outputs: Any) -> Any:
    """A model's outputs, in which the lists of rows are `Pieces`."""

    def is_list_of_rows(value: Any) -> bool:
        return type(value) in (list, tuple) and len(value) == 1 and hasattr(value[0], "_piece_lengths")

    leaves, structure = pytree.tree_flatten(outputs, is_leaf=is_list_of_rows)
    if not any(map(is_list_of_rows, leaves)):
        return outputs
    made = [
        Pieces(leaf[0], leaf[0]._piece_lengths, type(leaf).__name__) if is_list_of_rows(leaf) else leaf
        for leaf in leaves
    ]
    return pytree.tree_unflatten(made, structure)


class _ListKind(type):
    """Makes a name stand for `list` wherever code asks whether something is one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        value = args[0] if len(args) == 1 and not kwargs else None
        if isinstance(value, Pieces):
            return Pieces(value.packed, value.lengths, "list", lambda: list(value))
        if isinstance(value, Tensor) and value.dim() > 1 and isinstance(value.shape[0], SymInt):
            lengths = torch.full((value.shape[0],), value.shape[1], dtype=torch.int64, device=value.device)
            return Pieces(value.flatten(0, 1), lengths, "list", lambda: list(value))
        return list(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, list | Pieces)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, list)


class Listed(list[Any], metaclass=_ListKind):
    """`list` of a module under trace: of a batch, or of pieces, a list whose length stays open."""
