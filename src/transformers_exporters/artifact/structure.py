"""Structure trees: how nested kwargs and outputs are written into a manifest, without torch.

A tree is one of

- `{"leaf": i}`: the i-th tensor,
- `{"value": v}`: a JSON constant (None, a flag, a number, a string),
- `{"list": [...]}`, `{"tuple": [...]}`, `{"dict": {key: ...}}`, with `"int_keys": true` where keys of digits are numbers,
- `{"object": "package.module.Class", "fields": {name: ...}, "context": ...}`: a `ModelOutput`, a cache, a cache layer
  or a dataclass; `context` is whatever the class needs beside its fields, as JSON.

The object `PIECES` stands for a list (or a tuple: its context says which) of any number of tensors: `packed` holds them
along its first axis one after the other, `lengths` how long each is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .spec import Json

#: How an object node is rebuilt: (class path, fields, context) -> object.
ObjectBuilder = Callable[[str, dict[str, Any], Json], Any]

#: The class path of a list that a graph returns as one tensor.
PIECES = "transformers_exporters.hf.pieces.Pieces"

#: How a child of a value is found: (value, key) -> child; raises `KeyError` if there is none.
ChildGetter = Callable[[Any, str], Any]


@dataclass
class Flattened:
    """Kwargs laid along a structure tree.

    Attributes:
        leaves: The tensors, by leaf number.
        missing: Dotted paths of the tensors that were not given (or given as None).
        unexpected: Dotted paths of what was given, is not None, and has no place in the tree.
        mismatched: (dotted path, value of the tree, value given) of constants that were given another value.
    """

    leaves: dict[int, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: list[tuple[str, Json, Any]] = field(default_factory=list)


def plain_object(class_path: str, fields: dict[str, Any], context: Json) -> Any:
    """The builder used without transformers: an object becomes a plain dict of its fields."""
    return split_pieces(fields["packed"], fields["lengths"], context) if class_path == PIECES else fields


def split_pieces(packed: Any, lengths: Any, of: Json) -> list[Any] | tuple[Any, ...]:
    """The pieces of an array along its first axis, as a `list` or a `tuple`."""
    ends = list(itertools.accumulate(int(length) for length in lengths))
    pieces = [packed[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return tuple(pieces) if of == "tuple" else pieces


def leaf_paths(tree: Json, prefix: str = "") -> Iterator[tuple[int, str]]:
    """Yield (leaf number, dotted path) for every tensor of a structure tree."""
    if "leaf" in tree:
        yield tree["leaf"], prefix or "output"
        return
    for key, child in _children(tree):
        yield from leaf_paths(child, f"{prefix}.{key}" if prefix else key)


def constants(tree: Json, prefix: str = "") -> Iterator[tuple[str, Json]]:
    """Yield (dotted path, value) for every constant of a structure tree."""
    if "value" in tree:
        yield prefix, tree["value"]
        return
    for key, child in _children(tree):
        yield from constants(child, f"{prefix}.{key}" if prefix else key)


def rebuild(tree: Json, leaves: Sequence[Any], make_object: ObjectBuilder = plain_object) -> Any:
    """Put `leaves` (by number) into the structure `tree`; `make_object` builds the object nodes."""
    if "leaf" in tree:
        return leaves[tree["leaf"]]
    if "value" in tree:
        return tree["value"]
    if "list" in tree:
        return [rebuild(child, leaves, make_object) for child in tree["list"]]
    if "tuple" in tree:
        return tuple(rebuild(child, leaves, make_object) for child in tree["tuple"])
    children = {key: rebuild(child, leaves, make_object) for key, child in _children(tree)}
    if "dict" in tree:
        numbered = tree.get("int_keys", False)
        return {int(key) if numbered and key.isdigit() else key: child for key, child in children.items()}
    return make_object(tree["object"], children, tree.get("context"))


def _children(tree: Json) -> Iterator[tuple[str, Json]]:
    for kind in ("list", "tuple"):
        if kind in tree:
            yield from ((str(i), child) for i, child in enumerate(tree[kind]))
    fields: Mapping[str, Json] = tree.get("dict") or tree.get("fields") or {}
    yield from fields.items()


def get_child(value: Any, key: str) -> Any:
    """The item of a mapping or sequence, or the attribute of an object. Raises `KeyError` if there is none."""
    if isinstance(value, Mapping):  # never its attributes: the field `keys` is not the method
        return value[int(key)] if key not in value and key.isdigit() else value[key]
    if key.isdigit() and isinstance(value, list | tuple):
        if int(key) < len(value):
            return value[int(key)]
    elif hasattr(value, key):
        return getattr(value, key)
    raise KeyError(key)


def flatten_kwargs(tree: Json, kwargs: Any, get: ChildGetter = get_child) -> Flattened:
    """Lay nested kwargs along the structure tree that a component was traced with.

    A constant may be left out, or be None: the graph has its value baked in. Whether something unexpected was given can
    only be told for mappings and sequences, not for objects.
    """
    result = Flattened()
    _flatten(tree, kwargs, "", get, result)
    return result


def _flatten(tree: Json, value: Any, path: str, get: ChildGetter, result: Flattened) -> None:
    if "leaf" in tree:
        if value is None:
            result.missing.append(path or "output")
        else:
            result.leaves[tree["leaf"]] = value
        return
    if "value" in tree:
        if value is not None and not _is_constant(tree["value"], value):
            result.mismatched.append((path, tree["value"], value))
        return
    keys = set()
    for key, child in _children(tree):
        keys.add(key)
        try:
            item = None if value is None else get(value, key)
        except KeyError:
            item = None
        _flatten(child, item, f"{path}.{key}" if path else key, get, result)
    result.unexpected.extend(f"{path}.{key}" if path else key for key in _given(value) if key not in keys)


def _given(value: Any) -> Iterator[str]:
    """Keys of a mapping or sequence that hold something."""
    if isinstance(value, Mapping):
        yield from (str(key) for key, item in value.items() if item is not None)
    elif isinstance(value, list | tuple):
        yield from (str(i) for i, item in enumerate(value) if item is not None)


def _is_constant(baked: Json, given: Any) -> bool:
    """Whether a given value is the baked one. Enums and dtypes are baked by their text."""
    if isinstance(baked, list) and isinstance(given, list | tuple):
        return len(baked) == len(given) and all(map(_is_constant, baked, given))
    if isinstance(baked, Mapping) and isinstance(given, Mapping):
        return set(baked) == set(given) and all(_is_constant(baked[key], given[key]) for key in baked)
    if isinstance(baked, str):
        return baked == str(given)
    if not isinstance(given, bool | int | float):
        return False  # an array, where the graph was traced without one
    return bool(baked == given) or (baked != baked and given != given)
