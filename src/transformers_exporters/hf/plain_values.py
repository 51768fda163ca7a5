"""Plain values as JSON and back: what an object holds beside its tensors.

Numbers, texts, containers of them, dtypes, devices, enums, classes, configs, and objects whose attributes are such values.
"""

from __future__ import annotations

import enum
import importlib
import json
from types import SimpleNamespace
from typing import Any

import torch

from ..artifact.spec import Json

PLAIN = (bool, int, float, str, type(None))

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool, torch.Tensor)

# Of a config: where it was loaded from and what wrote it, which differs between two that are the same.
_ORIGIN = ("_name_or_path", "transformers_version")


def class_path(cls: type) -> str:
    """The dotted path of a class, as manifests and saved programs name it."""
    return f"{cls.__module__}.{cls.__qualname__}"


def import_class(path: str) -> type:
    """The class of a dotted path. Raises `ImportError` or `AttributeError` if there is none."""
    module, _, name = path.rpartition(".")
    found: type = getattr(importlib.import_module(module), name)
    return found


def find_class(path: str) -> type | None:
    """The class of a dotted path, or None where it cannot be imported."""
    try:
        return import_class(path) if path else None
    except (ImportError, AttributeError, ValueError):
        return None


class NotPlain(Exception):
    """A value that no JSON describes: a function, a module, an object that refers to one."""


def encode(value: Any, depth: int = 0) -> Json:
    """A plain value as JSON. Raises `NotPlain` for any other."""
    if type(value) in PLAIN:
        return value
    if depth > 8:
        raise NotPlain(f"{type(value).__name__} is nested too deeply")
    if isinstance(value, enum.Enum):
        return {"enum": _importable(type(value)), "name": value.name}
    if type(value) in (list, tuple, set, torch.Size):
        kind = type(value).__name__.lower()
        return {kind: [encode(item, depth + 1) for item in value]}
    if isinstance(value, dict):
        return _dict(value, depth)
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, type):
        return {"class": _importable(value)}
    return _object(value, depth)


def _dict(value: dict[Any, Any], depth: int) -> Json:
    for kind, name in ((int, "int_keys"), (str, "dict")):
        if all(type(key) is kind for key in value):
            return {name: {str(key): encode(item, depth + 1) for key, item in value.items()}}
    raise NotPlain("a dict whose keys are neither numbers nor texts")


def _object(value: Any, depth: int) -> Json:
    from transformers import PreTrainedConfig

    if isinstance(value, PreTrainedConfig):
        fields = json.loads(value.to_json_string(use_diff=False))
        return {
            "config": _importable(type(value)),
            "fields": {k: item for k, item in fields.items() if k not in _ORIGIN},
        }
    attributes = getattr(value, "__dict__", None)
    if attributes is None or callable(value) or isinstance(value, _SYMBOLIC):
        raise NotPlain(f"{type(value).__name__} is no plain value")
    return {
        "instance": _importable(type(value)),
        "fields": {k: encode(item, depth + 1) for k, item in attributes.items()},
    }


def _importable(cls: type) -> str:
    path = class_path(cls)
    if find_class(path) is not cls:
        raise NotPlain(f"{path} cannot be imported")
    return path


def decode(value: Json) -> Any:
    """The value of which `encode` made this; an object of a class that is not here becomes a `SimpleNamespace`."""
    if not isinstance(value, dict):
        return value
    kind, content = next(iter(value.items()))
    match kind:
        case "list" | "tuple" | "set" | "size":
            container: Any = {"list": list, "tuple": tuple, "set": set, "size": torch.Size}[kind]
            return container([decode(item) for item in content])
        case "int_keys":
            return {int(key): decode(item) for key, item in content.items()}
        case "dict":
            return {key: decode(item) for key, item in content.items()}
        case "dtype":
            return getattr(torch, content)
        case "device":
            return torch.device(content)
        case "class":
            return find_class(content)
    return _decode_object(value)


def _decode_object(value: dict[str, Json]) -> Any:
    cls: Any = find_class(value.get("enum") or value.get("config") or value.get("instance") or "")
    if "enum" in value:
        return value["name"] if cls is None else cls[value["name"]]
    if "config" in value:
        return SimpleNamespace(**value["fields"]) if cls is None else cls.from_dict(dict(value["fields"]))
    fields = {key: decode(item) for key, item in value["fields"].items()}
    if cls is None:
        return SimpleNamespace(**fields)
    made = cls.__new__(cls)
    vars(made).update(fields)
    return made
