"""`[x] * batch`: a list with one tensor many times over, whose length stays open."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import SymInt, Tensor

from .calling import calling_line


class Repeated(Sequence[Any]):
    """One tensor, many times over; listed only if somebody asks for the items.

    Attributes:
        tensor: The item.
        number: How many there are.
    """

    def __init__(self, tensor: Tensor, number: SymInt) -> None:
        self.tensor = tensor
        self.number = number

    def _items(self) -> list[Tensor]:
        return [self.tensor] * int(self.number)

    def __len__(self) -> int:
        return int(self.number)

    def __getitem__(self, index: Any) -> Any:
        return self._items()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())


#: A list that is repeated only to be put together.
_JOINED = re.compile(r"(cat|concat|concatenate|stack)\(\[[^\]]*(\[[^\]]*\][^\]]*)*\] \*")


def repeated(count: SymInt, items: list[Any]) -> Any:
    """`items * count`: of one tensor in a call that puts the items together a `Repeated`; else NotImplemented, for the list."""
    if len(items) == 1 and isinstance(items[0], Tensor) and _JOINED.search(calling_line()):
        return Repeated(items[0], count)
    return NotImplemented


def concatenated(tensors: Repeated, dim: int = 0) -> Tensor:
    """`torch.cat` of a repeated tensor."""
    x = tensors.tensor
    counts: list[Any] = [1] * x.dim()
    counts[dim] = tensors.number
    return x.repeat(counts)


def stacked(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`torch.stack`, and other names of `torch.cat`."""
    joining = original.__name__ != "stack"

    @functools.wraps(original)
    def join(tensors: Any, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(tensors, Repeated) or kwargs.keys() - {"dim"}:
            return original(tensors, *args, **kwargs)
        dim = args[0] if args else kwargs.get("dim", 0)
        if joining:
            return concatenated(tensors, dim)
        x = tensors.tensor.unsqueeze(dim)
        return x.expand(*(tensors.number if i == dim % x.dim() else -1 for i in range(x.dim())))

    return join
