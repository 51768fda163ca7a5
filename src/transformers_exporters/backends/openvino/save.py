"""Components → `.xml` graphs and one `.bin` with the weights of all of them."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

import numpy as np
import openvino
from openvino import Model, PartialShape, op

from ..contract import Lowered
from .constants import MappedRef

#: The shared weights of an artifact with several components.
SHARED_WEIGHTS = "weights.bin"

_ALIGNMENT = 64
_CHUNK = 1 << 20
# Constants of fewer bytes are written by OpenVINO: it needs the values of some of them to infer shapes.
_LARGE = 4096
_PLAIN = frozenset(("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"))
# A constant of the IR: where its bytes are in the weights file.
_CONSTANT = re.compile(rb'(<data element_type="[^"]*" shape="[^"]*" )offset="(\d+)" size="(\d+)"')
# A large constant in the disguise that `_take_large` gives it.
_MARK = "@weight:"
_DISGUISED = re.compile(
    rb'name="@weight:(\d+)" type="Parameter" version="opset1">\s*<data shape="([^"]*)" element_type="([^"]*)" />'
)


def save(components: Sequence[Lowered], directory: Path, weights: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Write one `.xml` a component; equal weights are stored once, however many components use them.

    Values that lie in a checkpoint file are copied from file to file in pieces; they never are in this process's memory.
    One component becomes `<name>.xml` and `<name>.bin`, which OpenVINO pairs by itself. Several share `weights.bin`, which
    `core.read_model(xml, bin)` takes.

    Args:
        components: What `lower` returned.
        directory: An existing directory.
        weights: Unused: the constants know where their values are.

    Returns:
        By component, the file names relative to `directory`: graph, weights.
    """
    file = f"{components[0].spec.name}.bin" if len(components) == 1 else SHARED_WEIGHTS
    with (directory / file).open("wb") as stream:
        pool = _Pool(stream)
        for component in components:
            _write(component, directory, pool)
    return {c.spec.name: (f"{c.spec.name}.xml", file) for c in components}


def _write(component: Lowered, directory: Path, pool: _Pool) -> None:
    """Let OpenVINO write the graph and its small constants; put the large ones into the pool and enter their places."""
    model = component.program.clone()  # the nodes; the constants' values are shared
    large = _take_large(model)
    names = {node.get_friendly_name() for node in model.get_ops()}
    files = {r.constant.data.ctypes.data: r for r in component.weights.values() if isinstance(r, MappedRef)}
    graph = directory / f"{component.spec.name}.xml"
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        own = Path(scratch) / "own.bin"
        openvino.serialize(model, graph, own)
        small = own.read_bytes()
    moved: dict[tuple[int, int], int] = {}

    def place_small(match: re.Match[bytes]) -> bytes:
        begin, size = int(match[2]), int(match[3])
        if (begin, size) not in moved:
            moved[begin, size] = pool.add(memoryview(small)[begin : begin + size])
        return b'%soffset="%d" size="%d"' % (match[1], moved[begin, size], size)

    def place_large(match: re.Match[bytes]) -> bytes:
        number = int(match[1])
        constant = large[number]
        name, size = constant.get_friendly_name(), constant.get_byte_size()
        name = f"{name}/{number}" if name in names else name
        names.add(name)
        offset = _store(constant, files, pool)
        data = b'element_type="%s" shape="%s" offset="%d" size="%d"' % (match[3], match[2], offset, size)
        quoted = escape(name, {'"': "&quot;"}).encode()
        return b'name="%s" type="Const" version="opset1">\n\t\t\t<data %s />' % (quoted, data)

    graph.write_bytes(_DISGUISED.sub(place_large, _CONSTANT.sub(place_small, graph.read_bytes())))


def _take_large(model: Model) -> list[op.Constant]:
    """Replace the large constants of a model by parameters called `@weight:<number>`; returns them in that order.

    OpenVINO's own writer reads all values into memory, hashes and compares them: 2.1 GB and 10 s for SmolLM2's two graphs
    (538 MB of weights, openvino 2026.4.1).
    """
    taken: list[op.Constant] = []
    stand_ins = []
    for node in model.get_ordered_ops():
        if not isinstance(node, op.Constant) or node.get_byte_size() < _LARGE:
            continue
        if node.get_element_type().get_type_name() not in _PLAIN:
            continue
        stand_in = op.Parameter(node.get_element_type(), PartialShape(list(node.get_output_shape(0))))
        stand_in.set_friendly_name(f"{_MARK}{len(taken)}")
        stand_in.output(0).get_tensor().set_names(node.output(0).get_tensor().get_names())
        for user in node.output(0).get_target_inputs():
            user.replace_source_output(stand_in.output(0))
        taken.append(node)
        stand_ins.append(stand_in)
    model.add_parameters(stand_ins)
    return taken


def _store(constant: Any, files: Mapping[int, MappedRef], pool: _Pool) -> int:
    values = constant.data
    ref = files.get(values.ctypes.data)
    if ref is not None and ref.length == constant.get_byte_size():
        return pool.add_range(ref)
    flat: Any = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return pool.add(memoryview(flat))


class _Pool:
    """A weights file that holds every content once."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._end = 0
        self._offsets: dict[Any, int] = {}

    def add(self, values: memoryview) -> int:
        """The offset of `values` in the file, written if they are new."""
        return self._add((hashlib.sha256(values).digest(), len(values)), iter([values]), len(values))

    def add_range(self, ref: MappedRef) -> int:
        """The offset of what lies in another file, copied if that range was not copied before."""
        return self._add((ref.file, ref.offset, ref.length), _pieces(ref), ref.length)

    def _add(self, key: Any, pieces: Iterator[bytes | memoryview], length: int) -> int:
        if key not in self._offsets:
            start = -(-self._end // _ALIGNMENT) * _ALIGNMENT
            self._stream.write(b"\0" * (start - self._end))
            self._stream.writelines(pieces)
            self._offsets[key], self._end = start, start + length
        return self._offsets[key]


def _pieces(ref: MappedRef) -> Iterator[bytes]:
    with ref.file.open("rb") as stream:
        stream.seek(ref.offset)
        left = ref.length
        while left and (piece := stream.read(min(left, _CHUNK))):
            left -= len(piece)
            yield piece
    if left:
        raise OSError(f"{ref.file} became shorter while it was read")
