"""What the manifest says about one file, and which names a file inside an artifact may have."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from ..errors import ArtifactError

__all__ = ["FileRecord", "check_name", "record_file"]

_CHUNK = 1 << 20


@dataclass(frozen=True)
class FileRecord:
    """Size and SHA-256 (lower-case hex) of a file."""

    sha256: str
    bytes: int


def record_file(file: Path) -> FileRecord:
    """Hash a file in chunks of 1 MiB. Raises `ArtifactError` if it cannot be read."""
    digest, size = hashlib.sha256(), 0
    buffer = memoryview(bytearray(_CHUNK))
    try:
        with file.open("rb", buffering=0) as stream:
            while count := stream.readinto(buffer):
                digest.update(buffer[:count])
                size += count
    except OSError as error:
        raise ArtifactError(f"Cannot read {file}: {error.strerror or error}; check its permissions.") from error
    return FileRecord(digest.hexdigest(), size)


def check_name(name: str) -> str:
    """Return `name` if it is a plain relative path with forward slashes that cannot leave the artifact's directory.

    Raises:
        ArtifactError: For an absolute path, a drive, a backslash, `.` or `..`, or an empty name.
    """
    parts = name.split("/")
    unsafe = (
        PurePosixPath(name).is_absolute()
        or bool(PureWindowsPath(name).drive)
        or any(character in name for character in "\\\0")
        or any(part in ("", ".", "..") for part in parts)
    )
    if unsafe:
        raise ArtifactError(f"The manifest names the file {name!r}, which is not a plain path inside the artifact.")
    return name
