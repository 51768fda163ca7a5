"""The base of every export config: fields, checks, JSON. Stdlib only; a backend's own fields live in its folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from .doors import find_backend
from .errors import ConfigError

__all__ = ["AutoExportConfig", "ExportConfig"]


@dataclass(kw_only=True)
class ExportConfig:
    """Fields common to all backends.

    Args:
        dynamic: Trace so that batch, sequence, cache and image axes may have any size afterwards.
        dynamic_shapes: Explicit dynamic axes, as `torch.export.export` takes them; wins over `dynamic`.
        strict: Trace with TorchDynamo's bytecode analysis instead of running the Python code.
        prefer_deferred_runtime_asserts_over_guards: Turn shape guards that would narrow a stated range into run-time
            assertions; needed by most language models under `Dim(min=, max=)`.
        quantizer: A quantizer that declares this format, applied during the export.
        disabled_workarounds: Ids of workarounds not to apply (see `transformers-exporters workarounds`).

    Raises:
        ConfigError: If a field has the wrong type or value.
    """

    export_format: ClassVar[str]

    dynamic: bool = False
    dynamic_shapes: Mapping[str, Any] | None = None
    strict: bool = False
    prefer_deferred_runtime_asserts_over_guards: bool = False
    quantizer: Any = None
    disabled_workarounds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"{type(self).__name__}.{item.name} must be True or False, got {value!r}.")
        if self.dynamic_shapes is not None and not isinstance(self.dynamic_shapes, Mapping):
            raise ConfigError("dynamic_shapes must be a dict from input name to axes, as torch.export.export takes it.")
        if isinstance(self.disabled_workarounds, str):
            raise ConfigError("disabled_workarounds must be a sequence of ids, not one string.")
        self.disabled_workarounds = tuple(self.disabled_workarounds)
        if self.quantizer is not None and not hasattr(self.quantizer, "check"):
            raise ConfigError(f"quantizer takes a Quantizer, got a {type(self.quantizer).__name__}.")
        if self.quantizer is not None:
            self.quantizer.check(self.export_format)

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from nothing: a JSON-ready dict with `export_format` first."""
        fields = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        fields["dynamic_shapes"] = _encode_shapes(self.dynamic_shapes)
        fields["disabled_workarounds"] = list(self.disabled_workarounds)
        if self.quantizer is not None:
            fields["quantizer"] = self.quantizer.to_dict()
        return {"export_format": self.export_format, **fields}

    def to_json_string(self) -> str:
        """`to_dict` as indented JSON."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Self:
        """Rebuild a config. Raises `ConfigError` naming an unknown field or another backend's format."""
        fields = dict(config)
        format = fields.pop("export_format", cls.export_format)
        if format != cls.export_format:
            raise ConfigError(f"{cls.__name__} is for {cls.export_format!r}, the dict is for {format!r}.")
        known = {item.name for item in dataclasses.fields(cls)}
        if unknown := sorted(set(fields) - known):
            raise ConfigError(f"{cls.__name__} has no field {unknown[0]!r}; its fields are {', '.join(sorted(known))}.")
        fields["dynamic_shapes"] = _decode_shapes(fields.get("dynamic_shapes"))
        if isinstance(fields.get("quantizer"), Mapping):
            from .quantize.recipes import from_dict

            fields["quantizer"] = from_dict(fields["quantizer"])
        return cls(**fields)


class AutoExportConfig:
    """Picks the config class by the `export_format` of a dict."""

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> ExportConfig:
        """Build the config of `config["export_format"]`. Raises `ConfigError` if the format is missing or unknown."""
        if "export_format" not in config:
            raise ConfigError('The dict needs an "export_format", for example {"export_format": "onnx"}.')
        config_class: type[ExportConfig] = find_backend(config["export_format"]).load("config")
        return config_class.from_dict(config)


def _encode_shapes(shapes: Any) -> Any:
    """`torch.export.Dim` as JSON, so that explicit shapes survive `to_json_string` and back."""
    if shapes is None or isinstance(shapes, int | str):
        return shapes
    if isinstance(shapes, Mapping):
        return {str(key): _encode_shapes(value) for key, value in shapes.items()}
    if isinstance(shapes, list | tuple):
        return [_encode_shapes(value) for value in shapes]
    if type(shapes).__name__ == "_DimHint":
        return {"dim": shapes.type.name, "min": _bound(shapes.min), "max": _bound(shapes.max)}
    return {"dim": shapes.__name__, "min": _bound(shapes.min), "max": _bound(shapes.max)}


def _bound(value: Any) -> int | None:
    """A `Dim`'s bound as JSON; torch writes "no bound" as an infinity of its own."""
    return value if type(value) is int and value < 2**62 else None


def _decode_shapes(shapes: Any) -> Any:
    if isinstance(shapes, Mapping) and set(shapes) == {"dim", "min", "max"}:
        from torch.export import Dim

        if shapes["dim"] in ("AUTO", "DYNAMIC", "STATIC"):
            hint = getattr(Dim, shapes["dim"])
            bounds = {key: shapes[key] for key in ("min", "max") if shapes[key] is not None}
            return hint(**bounds) if bounds else hint
        bounds = {key: value for key in ("min", "max") if isinstance(value := shapes[key], int)}
        return Dim(shapes["dim"], **bounds)
    if isinstance(shapes, Mapping):
        return {int(key) if key.isdigit() else key: _decode_shapes(value) for key, value in _string_keys(shapes)}
    if isinstance(shapes, list):
        return [_decode_shapes(value) for value in shapes]
    return shapes


def _string_keys(shapes: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    return [(str(key), value) for key, value in shapes.items()]
