"""Read JSON objects field by field, so that a wrong one is named by its path: `components.decode.inputs.0.dtype`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..errors import ArtifactError

Value = TypeVar("Value")

_KINDS: Mapping[type, str] = {str: "a string", int: "an integer", dict: "an object", list: "a list"}


class Fields:
    """A JSON object at `path` of the manifest, whose fields are read with a check of presence and type.

    Raises:
        ArtifactError: From every method, naming the field, if it is missing or of another type.
    """

    def __init__(self, value: Any, path: str = "") -> None:
        self._path = path
        self._object: Mapping[str, Any] = checked(value, dict, path)

    def _where(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def json(self, key: str) -> Any:
        """The field as it is; it must be there."""
        if key not in self._object:
            raise ArtifactError(f"The manifest lacks {self._where(key)}; export the model again.")
        return self._object[key]

    def text(self, key: str) -> str:
        """A string."""
        return checked(self.json(key), str, self._where(key))

    def integer(self, key: str) -> int:
        """An integer, not a bool."""
        return checked(self.json(key), int, self._where(key))

    def object(self, key: str) -> dict[str, Any]:
        """An object with values of any kind."""
        return dict(checked(self.json(key), dict, self._where(key)))

    def list_of(self, key: str, read: Callable[[Any, str], Value]) -> tuple[Value, ...]:
        """A list, each item read by `read(item, path)`."""
        items = checked(self.json(key), list, self._where(key))
        return tuple(read(item, f"{self._where(key)}.{i}") for i, item in enumerate(items))

    def dict_of(self, key: str, read: Callable[[Any, str], Value]) -> dict[str, Value]:
        """An object, each value read by `read(value, path)`."""
        return {name: read(value, f"{self._where(key)}.{name}") for name, value in self.object(key).items()}


def checked(value: Any, kind: type[Value], path: str) -> Value:
    """Return `value` if it is of the JSON kind `str`, `int` (a bool is not), `dict` or `list`."""
    if type(value) is not kind:
        where = path or "its top"
        raise ArtifactError(f"The manifest is wrong at {where}: {_KINDS[kind]} is needed, got {value!r:.60}.")
    return value


def text(value: Any, path: str) -> str:
    """Read one string."""
    return checked(value, str, path)


def integer(value: Any, path: str) -> int:
    """Read one integer."""
    return checked(value, int, path)
