"""An artifact's directory: written all at once or not at all, and checked when it is opened."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..errors import ArtifactError
from .files import FileRecord, check_name, record_file
from .manifest import MANIFEST_NAME, Manifest

__all__ = ["open_artifact", "record_files", "write_manifest", "writing"]

#: Files below this size are always hashed when an artifact is opened: graphs, configs, tokenizers.
HASHED_BELOW = 64 * 1024 * 1024

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def writing(directory: Path | str) -> Iterator[Path]:
    """Yield an empty directory beside `directory`; when the block ends without an error, put it in its place.

    An existing artifact is replaced as a whole; it stays readable until then, so that it may be the source of its own
    rewrite. On any error, `KeyboardInterrupt` included, everything is as it was before.

    Raises:
        ArtifactError: If `directory` holds other files, is a mount point or the current directory (neither can be
            renamed), or cannot be written.
    """
    target = Path(os.path.realpath(directory))
    made: list[Path] = []
    staging = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        _check_replaceable(target)
        for parent in reversed([p for p in target.parents if not p.exists()]):
            parent.mkdir()
            made.append(parent)
        staging.mkdir()
    except OSError as error:
        _remove_empty(made)
        raise ArtifactError(f"Cannot write {target}: {error.strerror}; choose another directory.") from error
    try:
        yield staging
        _swap(staging, target)
    except BaseException as error:
        shutil.rmtree(staging, ignore_errors=True)
        _remove_empty(made)
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise ArtifactError(
                f"Cannot write {target}: {error.strerror}; free some space or choose another."
            ) from error
        raise


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError(f"{target} is a file; choose a directory.")
    if any(target.iterdir()) and not (target / MANIFEST_NAME).is_file():
        raise ArtifactError(f"{target} holds files that are not an artifact; choose an empty or a new directory.")
    if target.is_mount() or target == Path(os.path.realpath(".")):
        raise ArtifactError(f"{target} is in use as a mount point or current directory; choose a directory below it.")


def _swap(staging: Path, target: Path) -> None:
    """Rename `staging` to `target`; what was there is put aside first and comes back if that fails."""
    try:
        if not target.exists():
            staging.rename(target)
            return
        backup = staging.with_suffix(".replaced")
        target.rename(backup)
        try:
            staging.rename(target)
        except BaseException:
            backup.rename(target)
            raise
    except OSError as error:
        raise ArtifactError(f"Cannot replace {target}: {error.strerror}; choose another directory.") from error
    # The new artifact is in place: a leftover of the old one is no reason to fail, and is hidden by its name.
    shutil.rmtree(backup, ignore_errors=True)


def _remove_empty(made: list[Path]) -> None:
    for parent in reversed(made):
        if not any(parent.iterdir()):
            parent.rmdir()


def record_files(directory: Path, known: Mapping[str, FileRecord] | None = None) -> dict[str, FileRecord]:
    """Size and hash of every file below `directory` but the manifest, sorted by name.

    Args:
        directory: Where the files are.
        known: Records that were made while writing, by name; these files are not read again.
    """
    records = dict(known or {})
    for file in sorted(directory.rglob("*")):
        name = file.relative_to(directory).as_posix()
        if file.is_file() and name != MANIFEST_NAME and name not in records:
            records[name] = record_file(file)
    return dict(sorted(records.items()))


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write `manifest.json` atomically (also into an existing artifact, to add what `verify` measured)."""
    partial = directory / f".{MANIFEST_NAME}.{uuid.uuid4().hex[:8]}"
    content = manifest.to_json()
    try:
        partial.write_text(content, encoding="utf-8")
        partial.replace(directory / MANIFEST_NAME)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ArtifactError(f"Cannot write the manifest of {directory}: {error.strerror}.") from error


def open_artifact(directory: Path | str, *, verify_hashes: bool = False) -> tuple[Path, Manifest]:
    """Read the manifest and check every file that it lists.

    Each must lie inside the directory (also through symbolic links) and have the recorded size; files below 64 MiB must
    have the recorded hash as well.

    Args:
        directory: The artifact.
        verify_hashes: Hash the larger files too (about a second a gigabyte).

    Returns:
        The directory with its links resolved, and the manifest.

    Raises:
        ArtifactError: Naming the file that is missing, truncated, changed or outside of the directory.
    """
    root = Path(os.path.realpath(directory))
    if not root.is_dir():
        raise ArtifactError(f"{directory} is not a directory; name the directory that save_pretrained wrote.")
    if not (root / MANIFEST_NAME).is_file():
        raise ArtifactError(f"{directory} has no {MANIFEST_NAME}, so it is not an exported model.")
    try:
        content = _inside(root, MANIFEST_NAME).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"Cannot read {root / MANIFEST_NAME}: {error}; export the model again.") from error
    manifest = Manifest.from_json(content)
    _check_files(root, manifest.files.items(), verify_hashes)
    return root, manifest


def _check_files(root: Path, files: Iterable[tuple[str, FileRecord]], verify_hashes: bool) -> None:
    for name, expected in files:
        file = _inside(root, name)
        if not file.is_file():
            raise ArtifactError(f"{root} lacks the file {name}; copy or export the model again.")
        size = file.stat().st_size
        if size != expected.bytes:
            raise ArtifactError(f"{name} has {size} bytes and should have {expected.bytes}; copy or export it again.")
        if (verify_hashes or size < HASHED_BELOW) and record_file(file).sha256 != expected.sha256:
            raise ArtifactError(f"{name} was changed after the export: its SHA-256 differs; copy or export it again.")


def _inside(root: Path, name: str) -> Path:
    file = root / check_name(name)
    if not Path(os.path.realpath(file)).is_relative_to(root):
        raise ArtifactError(f"{name} is a link to a file outside of {root}; put a copy of the file in its place.")
    return file
