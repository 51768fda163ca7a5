"""The sizes at which an artifact is compared, and the model's inputs at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..artifact.spec import ComponentSpec
from ..hf.pytrees import register_known_caches, register_objects_in
from ..prepare.axes import AxisNames, name_axes, named_leaves, own_name, with_traced_names
from ..prepare.record import Part
from ..prepare.resize import axis_size, axis_sizes, resize
from ..runtime.axis_expressions import holds

_SEQUENCES = ("sequence", "decoder_sequence", "encoder_sequence")
_EXTENTS = ("height", "width", "frames", "samples")


def cases(spec: ComponentSpec, part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """(sizes as text, kwargs) of every case, each set of sizes once."""
    register_known_caches()
    register_objects_in(dict(part.inputs))
    kwargs = {name: value for name, value in part.inputs.items() if value is not None}
    axes = with_traced_names(_tied(name_axes(kwargs), spec), spec.inputs)
    free = {name for name in _axis_names(axes) if _is_free(spec, axes, name)}
    own = axis_sizes(kwargs, axes, sorted(free))
    seen = set()
    for sizes in ({}, *_variations(own, spec)):
        wanted = {**own, **sizes}
        case = ", ".join(f"{name}={size}" for name, size in wanted.items()) or "the given sizes"
        if any(holds(condition, wanted) is False for condition in spec.options.get("conditions", ())):
            continue  # the artifact refuses them, and says so
        resized = resize(kwargs, axes, sizes)
        if case not in seen and _masked_rows(resized) <= _masked_rows(kwargs):
            seen.add(case)
            yield case, resized


def _tied(axes: Mapping[str, AxisNames], spec: ComponentSpec) -> dict[str, AxisNames]:
    """The axes, where the artifact says that one varies with another, by the other's name: they change together.

    Mllama itself takes a cross-attention mask with more rows than the text has tokens; a graph ties the two.
    """
    known, tied = _axis_names(axes), dict(axes)
    for tensor in spec.inputs:
        names = axes.get(tensor.name, ())
        if len(names) == len(tensor.shape):
            tied[tensor.name] = tuple(
                size if isinstance(size, str) and size in known else name
                for size, name in zip(tensor.shape, names, strict=True)
            )
    return tied


def _masked_rows(kwargs: Mapping[str, Any]) -> bool:
    """Whether a mask hides a whole row, which says nothing about the row: a shorter one may have lost what it showed."""
    masks = (value for name, value in kwargs.items() if name.endswith("attention_mask"))
    return any(isinstance(m, torch.Tensor) and m.dim() == 2 and not bool((m != 0).any(dim=1).all()) for m in masks)


def fixed_cases(spec: ComponentSpec, part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """One larger size for each axis that was to vary and that the artifact keeps constant."""
    kwargs = {name: value for name, value in part.inputs.items() if value is not None}
    axes = name_axes(kwargs)
    graph = {path: names for path, names in axes.items() if path in {tensor.name for tensor in spec.inputs}}
    for name in sorted(_axis_names(graph) - part.static):
        own = axis_size(kwargs, axes, name)
        if len(_sizes_of(kwargs, axes, name)) > 1:
            continue  # tensors that broadcast against each other: not one axis
        if own and name in ("batch", *_SEQUENCES, *_EXTENTS) and not _is_free(spec, axes, name):
            size = 2 * own if name in _EXTENTS else 2 * own + 1
            yield f"{name}={size}", resize(kwargs, axes, {name: size})


def _sizes_of(kwargs: Mapping[str, Any], axes: Mapping[str, AxisNames], name: str) -> set[int]:
    shapes = {path: value.shape for path, value in named_leaves(kwargs) if isinstance(value, torch.Tensor)}
    return {int(shapes[path][dim]) for path, names in axes.items() for dim, axis in enumerate(names) if axis == name}


def _variations(own: Mapping[str, int], spec: ComponentSpec) -> Iterator[dict[str, int]]:
    """Sizes to try beside the given ones: a batch of 1 and of 5, a shorter and a longer sequence, both together.

    Images, sounds and what has no name are doubled: what divides their size still does.
    """
    lengths = [name for name in _SEQUENCES if name in own]
    longer = {name: 2 * own[name] + 3 for name in lengths}
    shorter = {name: max(1, own[name] // 2) for name in lengths}
    if "cache" in own:
        query = own["total_sequence"] - own["cache"] if "total_sequence" in own else 0
        for sizes, cache in ((longer, 2 * own["cache"] + 3), (shorter, max(1, own["cache"] // 2))):
            sizes["cache"] = cache
            if "total_sequence" in own:
                name = "sequence" if "sequence" in own else "decoder_sequence"
                sizes["total_sequence"] = cache + sizes.get(name, own.get(name, query))
    doubled = {name: 2 * own[name] for name in _EXTENTS if name in own}
    traced = {
        name for tensor in spec.inputs for dim, name in enumerate(tensor.shape) if name == own_name(tensor.name, dim)
    }
    tried: list[tuple[int | None, dict[str, int]]] = [(5, {}), (1, {}), (None, longer), (None, shorter)]
    tried += [(3, longer), (1, shorter), (None, doubled)]
    tried += [(None, {name: 2 * own[name]}) for name in sorted(traced & own.keys())]
    for batch, sizes in tried:
        changed = dict(sizes) if batch is None or "batch" not in own else {"batch": batch, **sizes}
        if changed and all(_in_range(spec, name, size) for name, size in changed.items()):
            yield changed


def _in_range(spec: ComponentSpec, name: str, size: int) -> bool:
    return name not in spec.axes or spec.axes[name].allows(size)


def _axis_names(axes: Mapping[str, AxisNames]) -> set[str]:
    return {name for names in axes.values() for name in names if name is not None}


def _is_free(spec: ComponentSpec, axes: Mapping[str, AxisNames], name: str) -> bool:
    """Whether every input of the graph leaves this axis open."""
    shapes = {tensor.name: tensor.shape for tensor in spec.inputs}
    sizes = [
        shapes[path][dim] for path, names in axes.items() if path in shapes for dim, n in enumerate(names) if n == name
    ]
    return bool(sizes) and all(isinstance(size, str) for size in sizes)
