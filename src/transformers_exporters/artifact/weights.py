"""Where a weight's values are: in a checkpoint file, by offset, or in a tensor of this process.

Safetensors files are read by their header only and written tensor by tensor, with the standard library.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ArtifactError
from .files import FileRecord

#: safetensors' dtype names -> (our name, bytes an element).
SAFETENSORS_DTYPES: Mapping[str, tuple[str, int]] = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U64": ("uint64", 8),
    "U32": ("uint32", 4),
    "U16": ("uint16", 2),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
    "C64": ("complex64", 8),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "F8_E8M0": ("float8_e8m0fnu", 1),
}

# The reference implementation refuses longer headers, so nobody has a valid file with one.
_LONGEST_HEADER = 100_000_000
_ALIGNMENT = 64


@dataclass(frozen=True)
class CheckpointRef:
    """Values inside a safetensors file that is read by nobody until the artifact is run.

    Attributes:
        file: The safetensors file.
        key: The tensor's name in that file.
        offset: First byte of the values, counted from the start of the file.
        length: Number of bytes.
        dtype: numpy's name of the dtype, or `bfloat16`.
        shape: The tensor's shape.
    """

    file: Path
    key: str
    offset: int
    length: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TensorRef:
    """Values in memory. Two references to one storage (tied weights) hold the same `tensor`, so it is stored once."""

    tensor: Any  # torch.Tensor; this room does not import torch
    dtype: str
    shape: tuple[int, ...]


WeightRef = CheckpointRef | TensorRef


@dataclass(frozen=True)
class TensorSource:
    """A tensor to be written: `read` returns its values as C-contiguous little-endian bytes, and is called once."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], bytes | bytearray | memoryview]


def read_safetensors_index(file: Path) -> dict[str, CheckpointRef]:
    """The tensors of a safetensors file, from its header alone.

    Raises:
        ArtifactError: If the file is unreadable, truncated, or its header contradicts itself or the file's size.
    """
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header, start = _read_header(file, stream, size)
    except OSError as error:
        raise ArtifactError(f"Cannot read {file}: {error.strerror or error}.") from error
    index = {key: _parse_entry(file, key, entry, start) for key, entry in header.items() if key != "__metadata__"}
    end = start
    for ref in sorted(index.values(), key=lambda ref: (ref.offset, ref.length)):
        if ref.offset != end:
            raise ArtifactError(f"{file} is damaged: the bytes of {ref.key} overlap others or leave a gap.")
        end = ref.offset + ref.length
    if end > size:
        raise ArtifactError(f"{file} is truncated: it has {size} bytes and should have {end}; copy it again.")
    if end < size:
        raise ArtifactError(f"{file} is damaged: {size - end} bytes follow the last tensor.")
    return index


def _read_header(file: Path, stream: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > min(size - 8, _LONGEST_HEADER):
        raise ArtifactError(f"{file} is truncated, or is not a safetensors file.")
    try:
        header = json.loads(stream.read(length))
    except ValueError as error:
        raise ArtifactError(f"{file} is not a safetensors file: its header is not JSON.") from error
    if not isinstance(header, dict):
        raise ArtifactError(f"{file} is not a safetensors file: its header is not an object.")
    return header, 8 + length


def _parse_entry(file: Path, key: str, entry: Any, start: int) -> CheckpointRef:
    try:
        code, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        numbers_are_valid = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
    except (TypeError, KeyError, ValueError) as error:
        raise ArtifactError(f"{file} is damaged: the header's entry of {key} is malformed.") from error
    if code not in SAFETENSORS_DTYPES:
        raise ArtifactError(f"{file} holds {key} as {code}, a dtype that this version does not know.")
    dtype, width = SAFETENSORS_DTYPES[code]
    if not numbers_are_valid or end - begin != math.prod(shape) * width:
        raise ArtifactError(f"{file} is damaged: the size of {key} does not fit its dtype and shape.")
    return CheckpointRef(file, key, start + begin, end - begin, dtype, shape)


def write_safetensors(
    file: Path, tensors: Sequence[TensorSource], metadata: Mapping[str, str] | None = None
) -> FileRecord:
    """Write one safetensors file, one tensor in memory at a time, and hash it on the way.

    The values start at a multiple of 64 bytes (the format lets the header end in spaces). Tensors are ordered by falling
    element size, then as given, so that each lies at a multiple of its own element size without the gaps that the format forbids.

    Raises:
        ArtifactError: If two tensors share a name, a dtype is unknown, or `read` returns the wrong number of bytes.
    """
    codes = {name: (code, width) for code, (name, width) in SAFETENSORS_DTYPES.items()}
    for source in tensors:
        if source.dtype not in codes:
            raise ArtifactError(f"{source.name} is {source.dtype}, which the safetensors format cannot hold.")
    ordered = sorted(tensors, key=lambda source: -codes[source.dtype][1])
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    lengths, end = [], 0
    for source in ordered:
        code, width = codes[source.dtype]
        if source.name in header:
            raise ArtifactError(f"Two tensors are named {source.name}; give each its own name.")
        lengths.append(math.prod(source.shape) * width)
        header[source.name] = {"dtype": code, "shape": source.shape, "data_offsets": (end, end + lengths[-1])}
        end += lengths[-1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    prefix, digest = len(text).to_bytes(8, "little") + text, hashlib.sha256()
    with file.open("wb") as stream:
        stream.write(prefix)
        digest.update(prefix)
        for source, length in zip(ordered, lengths, strict=True):
            values = memoryview(source.read())
            if values.nbytes != length:
                raise ArtifactError(f"{source.name} has {values.nbytes} bytes; its dtype and shape need {length}.")
            stream.write(values)
            digest.update(values)
            del values  # before the next one is read
    return FileRecord(digest.hexdigest(), len(prefix) + end)


def link_or_copy(source: Path, target: Path) -> bool:
    """Put `source` at `target`, which must not exist: as a hard link (returns True) or, where that fails, as a copy.

    A symbolic link is followed first, so the target holds the values and not the link (the hub's cache is made of links).
    """
    source = source.resolve()
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # another file system, one without hard links, or a kernel that protects files of other owners
        shutil.copyfile(source, target)
        return False
    return True
