"""Whole numbers that objects among the inputs keep beside their tensors: how much a cache has seen, how long its ring is.

A graph takes tensors only. What forward changes becomes an int64 scalar tensor of the object, so that the graph reads it and
returns it; what forward only reads is built into the graph, which then holds for that number alone.
"""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch
from transformers import PreTrainedConfig

from ..hf.pytrees import computed_attributes, is_plain_object
from .untouched import kept_weights, untouched

logger = logging.getLogger(__name__)

#: Caches whose numbers follow from their tensors (`hf.pytrees`), or are the config's.
_KNOWN = "transformers.cache_utils"

#: Attributes that are a counter's tensor: (class, name).
Counters = frozenset[tuple[Any, str]]


def counters_as_tensors(model: torch.nn.Module, kwargs: Mapping[str, Any]) -> tuple[dict[str, int], Counters]:
    """Turn the numbers that forward changes into tensors, in place.

    The caller owns `kwargs`. The eager model runs once, if any object has a number.

    Returns:
        The numbers that forward only reads, by path; and the attributes that are tensors now.
    """
    if not dict(_numbers(kwargs)):
        return {}, frozenset()
    probe = copy.deepcopy(dict(kwargs))
    before = {path: holder[key] for path, (holder, key) in _numbers(probe)}
    try:
        with untouched(model), kept_weights(model), torch.no_grad(), _reads(probe) as read:
            model(**probe)
    except Exception as error:  # noqa: BLE001 - models raise whatever their ops raise; the trace will say it
        logger.debug("the eager run failed: %s", error)
        return {}, frozenset()
    after = {path: holder[key] for path, (holder, key) in _numbers(probe)}
    changed = {path for path, number in before.items() if after.get(path) != number}
    numbers_as_tensors(kwargs, changed)
    constant = {path: number for path, number in before.items() if path not in changed and _owner(path, read)}
    return constant, frozenset(
        (type(owner), name) for path, owner in _objects(kwargs) for name in vars(owner) if f"{path}.{name}" in changed
    )


def numbers_as_tensors(value: Any, paths: Collection[str] | None = None) -> None:
    """Make the whole numbers of objects in `value`, all or those at these paths, int64 scalar tensors."""
    for path, (holder, key) in list(_numbers(value)):
        if paths is None or path in paths:
            holder[key] = torch.tensor(holder[key])


@contextlib.contextmanager
def never_in_place(counters: Counters) -> Iterator[None]:
    """While held, who reads a counter gets a copy: `seen += 1` leaves what was read before as it was, as with a number."""

    def copied(owner: Any, name: str, value: Any) -> Any:
        return value.clone() if (type(owner), name) in counters and isinstance(value, torch.Tensor) else value

    with _watched({cls for cls, _ in counters}, copied):
        yield


def _owner(path: str, read: set[str]) -> bool:
    """Whether the attribute that is the number, or the dict that holds it, was read."""
    return path in read or path.rpartition(".")[0] in read


def _numbers(kwargs: Any) -> Iterator[tuple[str, tuple[dict[Any, Any], Any]]]:
    """(path, (the dict that holds it, its key)) of every whole number of every object, as paths name leaves."""
    for path, owner in _objects(kwargs):
        kind: Any = type(owner)
        for name, value in vars(owner).items():
            if name in computed_attributes(kind):
                continue
            if type(value) is int:
                yield f"{path}.{name}", (vars(owner), name)
            elif isinstance(value, dict):
                for key, item in value.items():
                    if type(item) is int:
                        yield f"{path}.{name}.{key}", (value, key)


def _objects(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, object) of what is neither a tensor, a container, nor a cache of transformers' own."""
    if depth > 6:
        return
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    elif is_plain_object(value) and not isinstance(value, torch.Tensor | torch.nn.Module | PreTrainedConfig):
        if type(value).__module__ != _KNOWN:
            yield path, value
        items = vars(value).items()
    for key, item in items:
        yield from _objects(item, f"{path}.{key}" if path else str(key), depth + 1)


@contextlib.contextmanager
def _reads(kwargs: Mapping[str, Any]) -> Iterator[set[str]]:
    """While held, note which attributes of the objects are read, by path."""
    paths = {id(owner): path for path, owner in _objects(kwargs)}
    read: set[str] = set()

    def noted(owner: Any, name: str, value: Any) -> Any:
        if id(owner) in paths:
            read.add(f"{paths[id(owner)]}.{name}")
        return value

    with _watched({type(owner) for _, owner in _objects(kwargs)}, noted):
        yield read


@contextlib.contextmanager
def _watched(classes: Collection[Any], seen: Callable[[Any, str, Any], Any]) -> Iterator[None]:
    """While held, who reads an attribute of an object of these classes gets `seen(object, name, value)`."""
    with contextlib.ExitStack() as restored:
        for cls in classes:
            original = cls.__getattribute__

            def read(self: Any, name: str, original: Any = original) -> Any:
                return seen(self, name, original(self, name))

            restored.callback(_restore, cls, vars(cls).get("__getattribute__"))
            cls.__getattribute__ = read
        yield


def _restore(cls: Any, own: Any) -> None:
    if own is None:
        del cls.__getattribute__
    else:
        cls.__getattribute__ = own
