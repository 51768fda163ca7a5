"""Write programs into one `.pte`, every weight once.

executorch keeps weights in two places of a `.pte`: those of its own kernels in the constant segment, those of a delegate
as named data, each in a segment of its own. A tied embedding is in both (SmolLM2: 113 of 652 MB). A segment is only an
offset and a size, so a named segment may as well lie inside the constant segment: that is what is done here. Seen to
load and run in executorch 1.5.1, from Python and C++.

Several components become the methods of one program, which share both kinds of weights.
"""

from __future__ import annotations

import copy
import dataclasses
import struct
from collections.abc import Mapping
from typing import Any

from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir.schema import Buffer, Program, Tensor

from .weight_bytes import SMALLEST, digest

#: Fields of the flatbuffer table `Program` (executorch/schema/program.fbs) and of `DataSegment`.
_SEGMENTS, _OFFSET, _SIZE = 4, 0, 1
_CONSTANT_ALIGNMENT = 16


def write_program(managers: Mapping[str, Any]) -> Cord:
    """Serialize programs as the methods of one.

    Args:
        managers: An `ExecutorchProgramManager` with one method `forward` by the name that its method shall have.

    Returns:
        The bytes of the file, in pieces that are shared with the managers.
    """
    merged, mutable, named = _merge(managers)
    return _serialize(merged, mutable, named)


def _merge(managers: Mapping[str, Any]) -> tuple[Program, list[Buffer], NamedDataStoreOutput]:
    store = NamedDataStore()
    mutable: list[Buffer] = []
    constants = [Buffer(storage=b"")]  # index 0 is what a tensor without a constant points to
    known: dict[bytes, int] = {}
    merged: Program | None = None
    for name, manager in managers.items():
        emitted = manager._emitter_output
        program = copy.deepcopy(emitted.program)
        if manager._named_data is not None:
            store.merge_named_data_store(manager._named_data)
        index = {0: 0}
        for old, buffer in enumerate(program.constant_buffer[1:], start=1):
            hashed = digest(buffer.storage)
            if hashed not in known:
                known[hashed] = len(constants)
                constants.append(buffer)
            index[old] = known[hashed]
        states = list(emitted.mutable_data or [])
        base = len(mutable)
        mutable += states
        for plan in program.execution_plan:
            plan.name = name if plan.name == "forward" else plan.name
            _renumber(plan, index, base)
        if merged is None:
            merged = dataclasses.replace(program, constant_buffer=constants)
        else:
            for plan in program.execution_plan:
                for delegate in plan.delegates:
                    delegate.processed.index += len(merged.backend_delegate_data)
            merged.execution_plan += program.execution_plan
            merged.backend_delegate_data += program.backend_delegate_data
    assert merged is not None
    return merged, mutable, store.get_named_data_store_output()


def _renumber(plan: Any, constants: Mapping[int, int], mutable_base: int) -> None:
    """Point a plan's tensors to the merged buffers. A tensor with planned memory and a buffer starts from that state."""
    for value in plan.values:
        tensor = value.val
        if isinstance(tensor, Tensor) and tensor.data_buffer_idx:
            if tensor.allocation_info is None:
                tensor.data_buffer_idx = constants[tensor.data_buffer_idx]
            else:
                tensor.data_buffer_idx += mutable_base


def _serialize(program: Program, mutable: list[Buffer], named: NamedDataStoreOutput) -> Cord:
    offsets = _offsets_by_digest(program)
    shared: dict[int, tuple[int, int]] = {}
    buffers = list(named.buffers)
    for i, data in enumerate(named.buffers):
        place = offsets.get(digest(data)) if len(data) >= SMALLEST else None
        if place is not None:
            shared[i] = (place, len(data))
            buffers[i] = _stand_in(i)
    cord = serialize_pte_binary(
        PTEFile(
            program=program,
            mutable_data=mutable or None,
            named_data=NamedDataStoreOutput(buffers=buffers, pte_data=named.pte_data, external_data={}),
        ),
        extract_delegate_segments=True,
    )
    return _with_shared_segments(cord, buffers, named.pte_data, shared) if shared else cord


def _stand_in(index: int) -> bytes:
    """Something small in a shared weight's place, until its segment is pointed elsewhere."""
    return struct.pack("<16sQ", b"shared weight", index)


def _offsets_by_digest(program: Program) -> dict[bytes, int]:
    """Where each large constant will lie in the constant segment, which is the first segment of the file."""
    offsets: dict[bytes, int] = {}
    position = 0
    for buffer in program.constant_buffer:
        if len(buffer.storage) >= SMALLEST:
            offsets[digest(buffer.storage)] = position
        position += -(-len(buffer.storage) // _CONSTANT_ALIGNMENT) * _CONSTANT_ALIGNMENT
    return offsets


def _with_shared_segments(
    cord: Cord, buffers: list[Any], entries: Mapping[str, Any], shared: Mapping[int, tuple[int, int]]
) -> Cord:
    """Point the segment of every stand-in to the constant with the weight's bytes."""
    pieces = list(cord._buffers)
    head = bytearray(pieces[0])
    # Named segments come last, in the order in which their buffers are first named.
    order = list(dict.fromkeys(entry.buffer_index for entry in entries.values()))
    tables = _segment_tables(head)
    for table, index in zip(tables[len(tables) - len(order) :], order, strict=True):
        if index in shared:
            offset, size = shared[index]
            if struct.unpack_from("<Q", head, _field(head, table, _SIZE))[0] != len(buffers[index]):
                raise AssertionError("the segments of this executorch version are laid out differently")
            struct.pack_into("<Q", head, _field(head, table, _OFFSET), offset)
            struct.pack_into("<Q", head, _field(head, table, _SIZE), size)
    result = Cord(bytes(head))
    for piece in pieces[1:]:
        result.append(piece)
    return result


def _segment_tables(data: bytearray) -> list[int]:
    """Positions of the `DataSegment` tables of a serialized `Program`."""
    root = struct.unpack_from("<I", data, 0)[0]
    at = _field(data, root, _SEGMENTS)
    vector = at + struct.unpack_from("<I", data, at)[0]
    count = struct.unpack_from("<I", data, vector)[0]
    places = [vector + 4 + 4 * i for i in range(count)]
    return [place + struct.unpack_from("<I", data, place)[0] for place in places]


def _field(data: bytearray, table: int, number: int) -> int:
    """Position of a field's value in a flatbuffer table."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    offset: int = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    if not offset:
        raise AssertionError("a segment without an offset or a size")
    return table + offset
