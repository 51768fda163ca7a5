"""Results as lines of JSON: a case that the file holds already is not run again."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

_PACKAGES = ("transformers-exporters", "torch", "transformers", "onnxruntime", "openvino", "executorch")


def finished(file: Path, keys: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, Any]]:
    """The last result of every case in the file, by the values of `keys`."""
    lines = file.read_text().splitlines() if file.is_file() else []
    return {tuple(case[key] for key in keys): case for case in map(json.loads, lines)}


def first_attempts(file: Path, keys: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, Any]]:
    """The first result of every case in the file: before anything was mended that its failure showed."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for case in map(json.loads, file.read_text().splitlines() if file.is_file() else []):
        found.setdefault(tuple(case[key] for key in keys), case)
    return found


def add(file: Path, case: dict[str, Any]) -> None:
    """Append a case, with the date and the versions of what it was measured with."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps({**case, "date": now(), "versions": versions()}) + "\n")


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def first_line(error: BaseException) -> str:
    """The first line of the message; a table for everybody names a file as it lies in its package."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return re.sub(r"\S*/site-packages/", "", lines[0])[:300]
