"""A weight's bytes where they are, until a file is written.

executorch copies every weight of its own kernels and of a delegate into `bytes`, and hashes each several times. It also
takes data that lies in a file; a checkpoint's tensor or one in memory is shown to it as that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from executorch.exir._serialize._cord import FileBackedData
from executorch.exir.emit._emitter import _Emitter
from executorch.exir.schema import EValue
from executorch.exir.tensor import make_tensor_value
from torch.export import ExportedProgram

from ...artifact.weights import CheckpointRef
from ...prepare.references import reference_of, tensor_bytes

#: Below this a copy costs nothing.
SMALLEST = 4096
_CHUNK = 2**23


class WeightBytes(FileBackedData):  # executorch is untyped
    """The bytes of one contiguous tensor. Only its hash and the writing of a file read them, piece by piece."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor.detach()
        reference = reference_of(tensor)
        self._reference = reference if isinstance(reference, CheckpointRef) else None
        self._size = tensor.nbytes
        self._digest: bytes | None = None

    def __deepcopy__(self, memo: Any) -> WeightBytes:
        return self

    def prefix(self, size: int) -> bytes:
        """The first `size` bytes."""
        return next(self._pieces(size))[:size].tobytes()

    def sha256(self) -> bytes:
        """Hash of all bytes."""
        if self._digest is None:
            digest = hashlib.sha256()
            for piece in self._pieces():
                digest.update(piece)
            self._digest = digest.digest()
        return self._digest

    def to_bytes(self) -> bytes:
        """All bytes."""
        return b"".join(self._pieces())

    def write_to_file(self, outfile: Any) -> None:
        """Append all bytes to an open file."""
        for piece in self._pieces():
            outfile.write(piece)

    def close(self) -> None:
        """Nothing to give back: the tensor belongs to the model."""

    def _pieces(self, chunk: int = _CHUNK) -> Iterator[memoryview]:
        if self._reference is None:
            yield tensor_bytes(self._tensor)
            return
        # Read, not mapped: a page that is touched through the mapping stays in this process's memory.
        buffer, left = bytearray(min(chunk, self._size)), self._size
        with open(self._reference.file, "rb") as file:
            file.seek(self._reference.offset)
            while left:
                read = file.readinto(memoryview(buffer)[:left])
                if not read:
                    raise EOFError(f"{self._reference.file} became shorter during the export.")
                yield memoryview(buffer)[:read]
                left -= read


def weight_bytes(tensor: torch.Tensor) -> WeightBytes | None:
    """The tensor's bytes by reference; None where a copy is as good, or its memory holds more than the tensor."""
    whole = tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes
    return WeightBytes(tensor) if whole and tensor.nbytes >= SMALLEST else None


def digest(data: Any) -> bytes:
    """Hash of `bytes` or of data that lies elsewhere."""
    known: bytes = data.sha256() if isinstance(data, FileBackedData) else hashlib.sha256(data).digest()
    return known


@contextmanager
def constants_by_reference(program: ExportedProgram) -> Iterator[None]:
    """While held, executorch's emitter stores the program's large constants as `WeightBytes`."""
    held = [*program.state_dict.values(), *program.constants.values()]
    pieces = {_place(t.untyped_storage()): weight_bytes(t) for t in held if isinstance(t, torch.Tensor)}
    emit = _Emitter._tensor_spec_to_evalue

    def by_reference(self: Any, spec: Any, constant_tag: str | None = None) -> Any:
        piece = _constant(spec, pieces)
        if piece is None:
            return emit(self, spec, constant_tag)
        hashed = piece.sha256().hex()
        index = self.program_state.cached_spec_hash_values.get(hashed)
        if index is None:
            index = self._save_new_const_tensor(spec, piece, hashed)
        return EValue(make_tensor_value(index, None, spec))

    with mock.patch.object(_Emitter, "_tensor_spec_to_evalue", by_reference):
        yield


def _constant(spec: Any, pieces: Mapping[Any, WeightBytes | None]) -> WeightBytes | None:
    """The piece behind a spec; None for activations, initial states, and constants that have none."""
    if not spec.const or spec.storage is None or spec.mem_id is not None or spec.extra_tensor_info is not None:
        return None
    piece = pieces.get(_place(spec.storage))
    return piece if piece is not None and len(piece) == spec.nbytes() else None


def _place(storage: Any) -> tuple[int, int]:
    return (storage.data_ptr(), storage.nbytes())
