"""Constants over a file that OpenVINO maps itself, so that nobody reads a weight before the model runs."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openvino
from openvino import op


@dataclass(frozen=True)
class Place:
    """A range of a file, and what to read it as.

    Attributes:
        file: Any file.
        offset: First byte.
        length: Number of bytes, not 0.
        kind: `openvino.Type` of the elements.
        shape: The shape.
    """

    file: Path
    offset: int
    length: int
    kind: Any
    shape: tuple[int, ...]


def map_file(file: Path, places: Collection[Place]) -> dict[Place, op.Constant]:
    """A constant for each place in one file; together they keep the mapping alive.

    An OpenVINO graph points into its weights file by offset, and the file may be any: here it is the checkpoint, and the
    graph is nothing but constants. `Constant` itself takes numpy arrays, which know neither bfloat16 nor float8, and one
    made from a `Tensor` does not keep its memory alive.
    """
    listed = list(places)
    with tempfile.TemporaryDirectory() as scratch:
        graph = Path(scratch) / "constants.xml"
        graph.write_text(_graph(listed), encoding="utf-8")
        model = openvino.Core().read_model(graph, file)
    made = {}
    for node in model.get_ops():
        if isinstance(node, op.Constant):
            made[listed[int(node.get_friendly_name())]] = node
    return made


def _graph(places: list[Place]) -> str:
    """An IR with constant number i for `places[i]`, each with a result of its own.

    A port must state a precision, which OpenVINO does not use: it reads the element type of the data.
    """
    layers, edges = [], []
    for i, place in enumerate(places):
        kind, result = place.kind.get_type_name(), len(places) + i
        dims = "".join(f"<dim>{size}</dim>" for size in place.shape)
        shape = ",".join(map(str, place.shape))
        layers.append(
            f'<layer id="{i}" name="{i}" type="Const" version="opset1">'
            f'<data element_type="{kind}" shape="{shape}" offset="{place.offset}" size="{place.length}"/>'
            f'<output><port id="0" precision="FP32">{dims}</port></output></layer>'
            f'<layer id="{result}" name="r{i}" type="Result" version="opset1">'
            f'<input><port id="0" precision="FP32">{dims}</port></input></layer>'
        )
        edges.append(f'<edge from-layer="{i}" from-port="0" to-layer="{result}" to-port="0"/>')
    return (
        f'<?xml version="1.0"?><net name="constants" version="11"><layers>{"".join(layers)}</layers>'
        f"<edges>{''.join(edges)}</edges></net>"
    )
