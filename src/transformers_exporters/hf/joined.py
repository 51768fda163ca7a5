"""What encoders return, as a graph takes it: without what no one reads, and what holds an item an image joined to one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch


def tensor_lists(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all lists and tuples of tensors inside nested dicts, lists and model outputs."""
    if _is_list(value):
        yield path
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from tensor_lists(item, _below(path, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from tensor_lists(item, _below(path, index))


def stacks(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """(path, tensor) of all tensors of several axes inside nested dicts and model outputs."""
    if isinstance(value, torch.Tensor) and value.dim() > 2:
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from stacks(item, _below(path, name))


def joined(value: Any, paths: Collection[str], pieces: int = 1, path: str = "") -> Any:
    """A copy of nested dicts, lists and model outputs in which the lists at `paths` hold their rows in `pieces` tensors.

    A tensor [items, rows, ...] at such a path is one of one item, [1, items x rows, ...].

    Args:
        value: What may hold such lists; tensors are shared.
        paths: As `tensor_lists` and `stacks` name them.
        pieces: How many tensors a list shall have.
        path: Where `value` is.
    """
    if path in paths and _is_list(value):
        rows = torch.cat(list(value), dim=0)
        return type(value)([rows] if pieces == 1 else torch.tensor_split(rows, pieces))
    if path in paths and isinstance(value, torch.Tensor):
        return value.flatten(0, 1).unsqueeze(0)
    if isinstance(value, Mapping):
        items = {name: joined(item, paths, pieces, _below(path, name)) for name, item in value.items()}
        return items if type(value) is dict else type(value)(**items)
    if isinstance(value, list | tuple):
        return type(value)(joined(item, paths, pieces, _below(path, index)) for index, item in enumerate(value))
    return value


def fields(value: Any, path: str = "") -> Iterator[str]:
    """The paths of what the model outputs inside nested dicts hold."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            below = _below(path, name)
            if type(value) is not dict and item is not None:
                yield below
            else:
                yield from fields(item, below)


def without(value: Any, paths: Collection[str], path: str = "") -> Any:
    """A copy of nested dicts and model outputs without the fields at `paths`."""
    if not isinstance(value, Mapping):
        return value
    kept = {
        name: without(item, paths, _below(path, name))
        for name, item in value.items()
        if _below(path, name) not in paths
    }
    return kept if type(value) is dict else type(value)(**kept)


def _below(path: str, name: Any) -> str:
    return f"{path}.{name}".removeprefix(".")


def _is_list(value: Any) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    tensors = [item for item in value if isinstance(item, torch.Tensor) and item.dim() > 0]
    return len(tensors) == len(value) and len({(t.shape[1:], t.dtype) for t in tensors}) == 1
