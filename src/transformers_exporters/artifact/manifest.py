"""`manifest.json`: everything about an artifact that is not in its graphs and weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArtifactError
from .fields import Fields, checked, integer, text
from .files import FileRecord, check_name
from .spec import ComponentSpec, Json
from .spec_json import decode_component, encode_component

__all__ = ["MANIFEST_NAME", "SCHEMA_VERSION", "Manifest", "ModelRecord"]

MANIFEST_NAME = "manifest.json"

#: Raised when an older version of this package could misread a manifest written by this one.
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class ModelRecord:
    """The source model.

    Attributes:
        class_path: `package.module.Class` of the model.
        config_class: `package.module.Class` of its config.
        name: The checkpoint's directory or hub id, or empty.
        parameters: Number of parameters.
        dtype: numpy's name of the model's dtype, or `bfloat16`.
    """

    class_path: str
    config_class: str
    name: str
    parameters: int
    dtype: str


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` holds.

    Free values must be JSON; a tuple inside of one is read back as a list. NaN and the infinities survive.

    Attributes:
        format: The `export_format`.
        components: Borders of the graphs, by component name.
        files: Size and hash of every file of the artifact but the manifest, by name relative to its directory.
        model: The source model.
        config: The export config as `ExportConfig.to_dict` gives it.
        packages: Versions that the artifact was made with, by distribution name.
        workarounds: By component: how often each workaround fired.
        notes: By component: what its lowering wants the user to know.
        verification: What `verify` measured, or None if it did not run.
        generation: How to drive the decode loop: `{"cache_argument": "cache", "static": true, "max_cache_len": 64}`.
        schema_version: Version of this layout.
    """

    format: str
    components: Mapping[str, ComponentSpec]
    files: Mapping[str, FileRecord]
    model: ModelRecord
    config: Mapping[str, Json] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    workarounds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    verification: list[Json] | None = None
    generation: Mapping[str, Json] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        """The manifest as indented JSON. Raises `ArtifactError` if a free value is not JSON."""
        document = {
            "schema_version": self.schema_version,
            "format": self.format,
            "model": vars(self.model),
            "components": {name: encode_component(spec) for name, spec in self.components.items()},
            "files": {name: vars(record) for name, record in self.files.items()},
            "config": self.config,
            "packages": self.packages,
            "workarounds": self.workarounds,
            "notes": self.notes,
            "verification": self.verification,
            "generation": self.generation,
        }
        return json.dumps(_encode(document, ""), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, content: str) -> Manifest:
        """Rebuild a manifest, equal to the one that was written.

        Raises:
            ArtifactError: If the text is not JSON, was written by a newer version, or a field is missing or wrong.
        """
        try:
            fields = Fields(json.loads(content, object_hook=_decode_object))
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"The manifest is not JSON ({error}); export the model again.") from error
        version = fields.integer("schema_version")
        if version > SCHEMA_VERSION:
            raise ArtifactError(
                f"The artifact has schema version {version}, this package reads up to {SCHEMA_VERSION}: run "
                "pip install --upgrade transformers-exporters."
            )
        manifest = cls(
            format=fields.text("format"),
            components={
                name: decode_component(name, value, f"components.{name}")
                for name, value in fields.object("components").items()
            },
            files={check_name(name): record for name, record in fields.dict_of("files", _decode_file).items()},
            model=_decode_model(fields.object("model")),
            config=fields.object("config"),
            packages=fields.dict_of("packages", text),
            workarounds=fields.dict_of("workarounds", _decode_counts),
            notes=fields.dict_of("notes", lambda value, path: checked(value, dict, path)),
            verification=None if fields.json("verification") is None else list(fields.list_of("verification", _as_is)),
            generation=fields.object("generation"),
            schema_version=version,
        )
        for name, spec in manifest.components.items():
            if missing := sorted(set(spec.files) - set(manifest.files)):
                raise ArtifactError(f"The component {name} needs {missing[0]}, which the manifest does not list.")
        return manifest


def _decode_model(value: dict[str, Any]) -> ModelRecord:
    fields = Fields(value, "model")
    return ModelRecord(
        class_path=fields.text("class_path"),
        config_class=fields.text("config_class"),
        name=fields.text("name"),
        parameters=fields.integer("parameters"),
        dtype=fields.text("dtype"),
    )


def _decode_file(value: Any, path: str) -> FileRecord:
    fields = Fields(value, path)
    return FileRecord(fields.text("sha256"), fields.integer("bytes"))


def _decode_counts(value: Any, path: str) -> dict[str, int]:
    return {key: integer(count, f"{path}.{key}") for key, count in checked(value, dict, path).items()}


def _as_is(value: Any, path: str) -> Any:
    return value


def _encode(value: Any, path: str) -> Any:
    """A copy of `value` out of plain JSON kinds. JSON has no NaN and infinities: they become `{"$float": "inf"}`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)  # torch.__version__ is a subclass of str
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, list | tuple):
        return [_encode(item, f"{path}.{i}") for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _encode(item, f"{path}.{key}") for key, item in value.items()}
    raise ArtifactError(f"{path.lstrip('.')} cannot be written to the manifest: {type(value).__name__} is not JSON.")


def _decode_object(value: dict[str, Any]) -> Any:
    if set(value) == {"$float"} and value["$float"] in ("nan", "inf", "-inf"):
        return float(value["$float"])
    return value
