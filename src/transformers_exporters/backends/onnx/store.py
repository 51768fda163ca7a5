"""Write ONNX components next to one shared weights file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from ...artifact.weights import (
    CheckpointRef,
    TensorRef,
    TensorSource,
    WeightRef,
    link_or_copy,
    read_safetensors_index,
    write_safetensors,
)
from ...prepare.references import bytes_key, mapped, tensor_bytes
from ..contract import Lowered

WEIGHTS = "model.safetensors"
# A checkpoint file is linked as it is if the graphs use this part of it; else what they use is copied. A quantized graph may
# use nothing but an embedding of it.
_LINKED_PART = 0.9
# Values below this size stay inside the graph file, where shape inference and constant folding of runtimes see them.
_INLINE_BYTES = 1024

_SAFETENSORS_TO_ONNX = {
    "float32": ir.DataType.FLOAT,
    "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16,
    "float64": ir.DataType.DOUBLE,
    "int64": ir.DataType.INT64,
    "int32": ir.DataType.INT32,
    "int16": ir.DataType.INT16,
    "int8": ir.DataType.INT8,
    "uint8": ir.DataType.UINT8,
    "bool": ir.DataType.BOOL,
    "float8_e4m3fn": ir.DataType.FLOAT8E4M3FN,
    "float8_e5m2": ir.DataType.FLOAT8E5M2,
}


def write_components(components: Sequence[Lowered], directory: Path) -> dict[str, tuple[str, ...]]:
    """Write every component's graph, and each distinct weight once. Returns file names by component, graph first."""
    components = _with_copies(components, _linkable(components))
    sources = _checkpoint_files(components)
    linked = {source: _free_name(directory, source, index) for index, source in enumerate(sources)}
    for source, name in linked.items():
        link_or_copy(source, directory / name)
    written = _write_tensors(components, directory)
    files: dict[str, tuple[str, ...]] = {}
    for component in components:
        model = component.program.model
        used: dict[str, None] = {}
        kept = {name: value.const_value for name, value in model.graph.initializers.items()}
        try:
            for name, value in model.graph.initializers.items():
                placed = _place(name, component.weights.get(name), value, directory, linked, written)
                if placed is not None:
                    value.const_value = placed
                    used[str(placed.location)] = None
            graph_file = f"{component.spec.name}.onnx"
            ir.save(model, directory / graph_file)
        finally:
            for name, tensor in kept.items():
                model.graph.initializers[name].const_value = tensor
        files[component.spec.name] = (graph_file, *used)
    return files


def _linkable(components: Sequence[Lowered]) -> set[Path]:
    """The checkpoint files of which the graphs use enough."""
    used: dict[Path, dict[int, int]] = {}
    for component in components:
        for name, reference in component.weights.items():
            if isinstance(reference, CheckpointRef) and name in component.program.model.graph.initializers:
                used.setdefault(reference.file, {})[reference.offset] = reference.length
    return {file for file, parts in used.items() if sum(parts.values()) >= _LINKED_PART * file.stat().st_size}


def _with_copies(components: Sequence[Lowered], linkable: set[Path]) -> list[Lowered]:
    """The components with their other checkpoint weights as tensors over the file, which are read when they are written."""
    copies: dict[CheckpointRef, TensorRef] = {}
    made = []
    for component in components:
        weights = dict(component.weights)
        for name, reference in weights.items():
            if isinstance(reference, CheckpointRef) and reference.file not in linkable:
                if reference not in copies:
                    copies[reference] = TensorRef(mapped(reference), reference.dtype, reference.shape)
                weights[name] = copies[reference]
        made.append(dataclasses.replace(component, weights=weights))
    return made


def _checkpoint_files(components: Sequence[Lowered]) -> list[Path]:
    files = {ref.file for c in components for ref in c.weights.values() if isinstance(ref, CheckpointRef)}
    return sorted(files)


def _free_name(directory: Path, source: Path, index: int) -> str:
    return source.name if source.suffix == ".safetensors" else f"checkpoint-{index}.safetensors"


def _write_tensors(components: Sequence[Lowered], directory: Path) -> dict[tuple[Any, ...], CheckpointRef]:
    """Store each in-memory weight once; returns where, by `bytes_key`."""
    entries: dict[tuple[Any, ...], tuple[str, torch.Tensor]] = {}
    taken: set[str] = set()
    for component in components:
        for name, value in component.program.model.graph.initializers.items():
            tensor = _in_memory(component.weights.get(name), value)
            if tensor is None or tensor.numel() * tensor.element_size() < _INLINE_BYTES:
                continue
            key = bytes_key(tensor)
            if key not in entries:
                unique = name if name not in taken else f"{component.spec.name}.{name}"
                taken.add(unique)
                entries[key] = (unique, tensor)
    if not entries:
        return {}
    target = directory / (WEIGHTS if not (directory / WEIGHTS).exists() else "graph-constants.safetensors")
    write_safetensors(
        target,
        [
            TensorSource(name, str(t.dtype).removeprefix("torch."), tuple(t.shape), partial(tensor_bytes, t))
            for name, t in entries.values()
        ],
    )
    index = read_safetensors_index(target)
    return {key: index[name] for key, (name, _) in entries.items()}


def _in_memory(reference: WeightRef | None, value: ir.Value) -> torch.Tensor | None:
    if isinstance(reference, TensorRef):
        return reference.tensor
    raw = getattr(value.const_value, "raw", None)
    if reference is None and isinstance(raw, torch.Tensor) and raw.device.type != "meta":
        return raw
    return None


def _place(
    name: str,
    reference: WeightRef | None,
    value: ir.Value,
    directory: Path,
    linked: dict[Path, str],
    written: dict[tuple[Any, ...], CheckpointRef],
) -> ir.ExternalTensor | None:
    if isinstance(reference, CheckpointRef):
        return _external(name, reference, linked[reference.file], directory)
    tensor = _in_memory(reference, value)
    stored = written.get(bytes_key(tensor)) if tensor is not None else None
    constant = value.const_value
    if tensor is None or stored is None or constant is None:
        return None
    # The same bytes may be shown in another form here: an embedding's rows are the blocks of the projection tied to it,
    # two 4-bit integers are a byte.
    return _external(name, stored, stored.file.name, directory, constant.dtype, constant.shape)


def _external(
    name: str,
    reference: CheckpointRef,
    location: str,
    directory: Path,
    dtype: ir.DataType | None = None,
    shape: Any = None,
) -> ir.ExternalTensor:
    return ir.ExternalTensor(
        location=location,
        offset=reference.offset,
        length=reference.length,
        dtype=dtype or _SAFETENSORS_TO_ONNX[reference.dtype],
        shape=ir.Shape(list(reference.shape if shape is None else shape)),
        name=name,
        base_dir=str(directory),
    )
