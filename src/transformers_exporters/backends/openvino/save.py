"""Components → `.xml` graphs and one `.bin` with the weights of all of them."""

from __future__ import annotations

import hashlib
import mmap
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import openvino

from ..contract import Lowered

#: The shared weights of an artifact with several components.
SHARED_WEIGHTS = "weights.bin"

_ALIGNMENT = 64
# A constant of the IR: where its bytes are in the weights file.
_CONSTANT = re.compile(rb'(<data element_type="[^"]*" shape="[^"]*" )offset="(\d+)" size="(\d+)"')


def save(components: Sequence[Lowered], directory: Path, weights: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Write one `.xml` a component; equal weights are stored once, however many components use them.

    Constants are streamed from the memory or the file that holds them. One component becomes `<name>.xml` and
    `<name>.bin`, which OpenVINO pairs by itself. Several share `weights.bin`, which `core.read_model(xml, bin)` takes.

    Args:
        components: What `lower` returned.
        directory: An existing directory.
        weights: Unused: the constants know where their values are.

    Returns:
        By component, the file names relative to `directory`: graph, weights.
    """
    if len(components) == 1:
        name = components[0].spec.name
        openvino.serialize(components[0].program, directory / f"{name}.xml", directory / f"{name}.bin")
        return {name: (f"{name}.xml", f"{name}.bin")}
    with (directory / SHARED_WEIGHTS).open("w+b") as shared:
        pool = _Pool(shared)
        for component in components:
            _write_shared(component, directory, pool)
    return {c.spec.name: (f"{c.spec.name}.xml", SHARED_WEIGHTS) for c in components}


def _write_shared(component: Lowered, directory: Path, pool: _Pool) -> None:
    graph = directory / f"{component.spec.name}.xml"
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        own = Path(scratch) / "own.bin"
        openvino.serialize(component.program, graph, own)
        if own.stat().st_size == 0:
            return
        with own.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as values:
            moved: dict[tuple[int, int], int] = {}

            def place(match: re.Match[bytes]) -> bytes:
                begin, size = int(match[2]), int(match[3])
                if (begin, size) not in moved:
                    with memoryview(values) as view, view[begin : begin + size] as part:
                        moved[begin, size] = pool.add(part)
                return b'%soffset="%d" size="%d"' % (match[1], moved[begin, size], size)

            graph.write_bytes(_CONSTANT.sub(place, graph.read_bytes()))


class _Pool:
    """A weights file that holds every content once."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._end = 0
        self._offsets: dict[tuple[bytes, int], int] = {}

    def add(self, values: memoryview) -> int:
        """The offset of `values` in the file, written if they are new."""
        key = hashlib.sha256(values).digest(), len(values)
        if key not in self._offsets:
            start = -(-self._end // _ALIGNMENT) * _ALIGNMENT
            self._stream.write(b"\0" * (start - self._end))
            self._stream.write(values)
            self._offsets[key], self._end = start, start + len(values)
        return self._offsets[key]
