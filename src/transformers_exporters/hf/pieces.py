"""A list with one tensor per image, of which a graph can hold any number: one tensor of all pieces, and their lengths.

A graph returns a fixed number of tensors. So a model that returns a list with an item per image would take as many images
as it was traced with. Laid end to end the pieces are one tensor, and where the artifact's outputs are put together it is
cut into the list again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from ..artifact.structure import PIECES, split_pieces


class Pieces(Sequence[Any]):
    """Pieces of a tensor along its first axis, cut only if somebody asks for one.

    Attributes:
        packed: All pieces, one after the other: [sum of lengths, ...].
        lengths: int64 [pieces].
        of: `list` or `tuple`: what the model makes of them.
    """

    def __init__(self, packed: Any, lengths: Any, of: str, cut: Callable[[], Sequence[Any]] | None = None) -> None:
        self.packed = packed
        self.lengths = lengths
        self.of = of
        self._cut = cut
        self._known: Sequence[Any] | None = None

    def pieces(self) -> Sequence[Any]:
        """The tensors one by one, which fixes their number in a trace."""
        if self._known is None:
            self._known = split_pieces(self.packed, self.lengths, self.of) if self._cut is None else self._cut()
        return self._known

    def __len__(self) -> int:
        return len(self.pieces())

    def __getitem__(self, index: Any) -> Any:
        return self.pieces()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.pieces())


def _flatten(value: Pieces) -> tuple[list[Any], str]:
    return [value.packed, value.lengths], value.of


def _flatten_with_keys(value: Pieces) -> tuple[list[tuple[Any, Any]], str]:
    return [(pytree.GetAttrKey("packed"), value.packed), (pytree.GetAttrKey("lengths"), value.lengths)], value.of


def _unflatten(children: Iterable[Any], of: Any) -> Any:
    """Of computed tensors the list that the model returns, of anything else (a trace's tensors) the pair."""
    packed, lengths = children
    if type(packed) is Tensor and type(lengths) is Tensor:
        return split_pieces(packed, lengths, of)
    return Pieces(packed, lengths, of)


pytree.register_pytree_node(
    Pieces,
    _flatten,
    _unflatten,
    serialized_type_name=PIECES,
    flatten_with_keys_fn=_flatten_with_keys,
    to_dumpable_context=lambda context: context,
    from_dumpable_context=lambda context: context,
)


def as_packed(named: Mapping[str, Tensor], outputs: Iterable[str]) -> dict[str, Tensor]:
    """Outputs by leaf path, with the lists of which `outputs` holds `<path>.packed` and `<path>.lengths` in that form too."""
    result = dict(named)
    for path in (name.removesuffix(".lengths") for name in outputs if name.endswith(".lengths")):
        pieces: list[Tensor] = []
        while (piece := named.get(f"{path}.{len(pieces)}")) is not None:
            pieces.append(piece)
        if pieces and f"{path}.packed" not in named:
            result[f"{path}.packed"] = torch.cat(pieces)
            result[f"{path}.lengths"] = torch.tensor([piece.shape[0] for piece in pieces])
    return result
