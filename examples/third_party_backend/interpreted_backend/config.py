"""The export config."""

from dataclasses import dataclass
from typing import ClassVar

from transformers_exporters import ExportConfig


@dataclass(kw_only=True)
class InterpretedConfig(ExportConfig):
    """The common fields, and one of its own.

    Attributes:
        indent: How far the JSON is indented; None writes one line.
    """

    export_format: ClassVar[str] = "interpreted"

    indent: int | None = None
