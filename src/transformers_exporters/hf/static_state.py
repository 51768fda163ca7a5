"""The state of a static cache during generation: made once, then one buffer a tensor for the whole loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ..artifact.spec import ComponentSpec, Json
from ..artifact.structure import rebuild
from ..runtime.assumed import check_assumed
from ..runtime.torch_arrays import to_numpy, to_torch
from .outputs import make_object

if TYPE_CHECKING:
    from .exported import ExportedComponent

__all__ = ["allocate", "complete_masks", "run_in_place", "stays_in_place"]


def allocate(cache: Any, spec: ComponentSpec, name: str, batch: int) -> None:
    """Give the layers of a static cache that have no tensors yet zeros of the shapes that a component takes.

    transformers makes them when a layer sees its first keys; an exported graph takes them from its first call on.

    Args:
        cache: A transformers cache; layers that already have tensors, or that the graph does not know, stay as they are.
        spec: The component's border.
        name: The cache's argument.
        batch: Rows of the batch.
    """
    inputs = {tensor.name: tensor for tensor in spec.inputs}
    for index, layer in enumerate(getattr(cache, "layers", ())):
        keys, values = (inputs.get(f"{name}.layers.{index}.{part}") for part in ("keys", "values"))
        if keys is None or values is None or getattr(layer, "is_initialized", True):
            continue
        states = [
            torch.zeros(batch, int(t.shape[1]), 0, int(t.shape[3]), dtype=getattr(torch, t.dtype))
            for t in (keys, values)
        ]
        layer.lazy_initialization(*states)


def complete_masks(spec: ComponentSpec, kwargs: dict[str, Any], past: int, window: int | None) -> dict[str, Any]:
    """Spell out the 4-D masks that transformers leaves out where `is_causal` would do: a graph has its mask as an input.

    Args:
        spec: The component's border; only masks of rank 4 and dtype bool are completed.
        kwargs: The step's kwargs, with `input_ids`. `attention_mask` may be missing, bool or int [batch, past + queries],
            or a dict by layer type in which some are None.
        past: How many positions the cache has seen.
        window: Of the sliding layers.
    """
    wanted = {t.name: t for t in spec.inputs if t.name.partition(".")[0] == "attention_mask" and len(t.shape) == 4}
    given = kwargs.get("attention_mask")
    keys = next((t for t in spec.inputs if t.name.endswith(".keys")), None)
    if not wanted or keys is None or any(t.dtype != "bool" for t in wanted.values()):
        return kwargs
    if isinstance(given, torch.Tensor) and given.dim() == 4:
        return kwargs
    length = _cache_length(kwargs, keys.name)
    seen = given if isinstance(given, torch.Tensor) else None
    made = {
        name: _causal(kwargs["input_ids"], seen, past, length, window if "sliding" in name else None) for name in wanted
    }
    if list(made) == ["attention_mask"]:
        return {**kwargs, "attention_mask": made["attention_mask"]}
    existing = given if isinstance(given, dict) else {}
    masks = {name.partition(".")[2]: mask for name, mask in made.items()}
    return {**kwargs, "attention_mask": masks | {key: mask for key, mask in existing.items() if mask is not None}}


def _cache_length(kwargs: dict[str, Any], keys: str) -> int:
    name, _, index, _ = keys.split(".")[:4]
    return int(kwargs[name].layers[int(index)].keys.shape[2])


def _causal(ids: torch.Tensor, seen: torch.Tensor | None, past: int, length: int, window: int | None) -> torch.Tensor:
    """bool [batch, 1, queries, length]: key j is visible to query i up to its own position, unless it is padding."""
    batch, queries = ids.shape[:2]
    rows = past + torch.arange(queries)[:, None]
    columns = torch.arange(length)[None]
    visible = columns <= rows
    if window is not None:
        visible &= columns > rows - window
    mask = visible.expand(batch, 1, queries, length).clone()
    if seen is not None:
        mask[..., : seen.shape[1]] &= seen.bool()[:, None, None, :length]
    return mask


def stays_in_place(component: ExportedComponent) -> bool:
    """Whether the engine can update the component's state in the caller's own buffers."""
    spec = component.spec
    inputs = {tensor.name: tensor for tensor in spec.inputs}
    outputs = {tensor.name: tensor for tensor in spec.outputs}
    same = all(
        (inputs[old].shape, inputs[old].dtype) == (outputs[new].shape, outputs[new].dtype) for old, new in spec.state
    )
    named = isinstance(spec.output_structure, dict) and "fields" in spec.output_structure
    return bool(spec.state) and same and named and hasattr(component.session, "run_bound")


def run_in_place(component: ExportedComponent, step: dict[str, Any], cache: Any) -> Any:
    """One step that leaves the new state in the cache's own tensors, and returns that cache with the outputs.

    Args:
        component: One for which `stays_in_place` holds.
        step: The kwargs.
        cache: The step's cache; its tensors must be contiguous, and are written.
    """
    spec = component.spec
    feeds = component.feeds(step)
    buffers = {old: feeds.pop(old) for old, _ in spec.state}
    arrays = {key: to_numpy(value) for key, value in feeds.items()}
    outputs = component.session.run_bound(arrays, buffers)  # type: ignore[attr-defined]
    check_assumed(spec, outputs)
    kept = {new for _, new in spec.state}
    field = spec.state[0][1].partition(".")[0]
    leaves = [None if t.name in kept else to_torch(outputs[t.name]) for t in spec.outputs]
    result = rebuild(_without(spec.output_structure, field), leaves, make_object)
    result[field] = cache
    return result


def _without(tree: Json, field: str) -> Json:
    """A structure tree whose top object has None for one field: a cache that need not be built anew."""
    return {**tree, "fields": {**tree["fields"], field: {"value": None}}}
