"""The PyTorch export's config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...configs import ExportConfig


@dataclass(kw_only=True)
class DynamoConfig(ExportConfig):
    """Config of `DynamoExporter`.

    Args:
        aot_compile: When the artifact is saved, compile each component ahead of time with AOTInductor as well
            (`<component>.aoti.pt2`, needs a C++ compiler); the reloaded artifact then runs the compiled package.
    """

    export_format: ClassVar[str] = "dynamo"

    aot_compile: bool = False
