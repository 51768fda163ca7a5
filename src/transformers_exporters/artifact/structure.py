"""Structure trees: how nested kwargs and outputs are written into a manifest, without torch.

A tree is one of

- `{"leaf": i}`: the i-th tensor,
- `{"value": v}`: a JSON constant (None, a flag, a number, a string),
- `{"list": [...]}`, `{"tuple": [...]}`, `{"dict": {key: ...}}`,
- `{"object": "package.module.Class", "fields": {name: ...}, "context": ...}`: a `ModelOutput`, a cache, a cache layer
  or a dataclass; `context` is whatever the class needs beside its fields, as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .spec import Json

#: How an object node is rebuilt: (class path, fields, context) -> object.
ObjectBuilder = Callable[[str, dict[str, Any], Json], Any]


def plain_object(class_path: str, fields: dict[str, Any], context: Json) -> Any:
    """The builder used without transformers: an object becomes a plain dict of its fields."""
    return fields


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
        return children
    return make_object(tree["object"], children, tree.get("context"))


def _children(tree: Json) -> Iterator[tuple[str, Json]]:
    for kind in ("list", "tuple"):
        if kind in tree:
            yield from ((str(i), child) for i, child in enumerate(tree[kind]))
    fields: Mapping[str, Json] = tree.get("dict") or tree.get("fields") or {}
    yield from fields.items()
