"""Run a model for its shapes alone, without touching the values of its weights."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..hf.pytrees import register_known_caches, register_objects_in
from .references import is_referenced


def run_forward(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Any:
    """`model(**inputs)` on a copy of the inputs; on the meta device where the weights are only referenced."""
    inputs = copy.deepcopy(dict(inputs))
    if not is_referenced(model):
        return model(**inputs)
    with without_values(model):
        return model(**to_device(inputs, "meta"))


@contextmanager
def without_values(model: torch.nn.Module) -> Iterator[None]:
    """While held, the model's parameters and buffers are on `meta`; the originals come back on exit."""
    exporting = torch.compiler._is_exporting_flag
    held = [(table, dict(table)) for m in model.modules() for table in (m._parameters, m._buffers)]
    twins: dict[int, torch.Tensor] = {}
    try:
        # Models leave out questions about values (is this mask all ones?) while they are exported.
        torch.compiler._is_exporting_flag = True
        for table, original in held:
            for name, tensor in original.items():
                if tensor is not None:
                    twin = twins.get(id(tensor))
                    if twin is None:
                        twin = tensor.detach().to("meta")
                        if isinstance(tensor, torch.nn.Parameter):
                            twin = torch.nn.Parameter(twin, requires_grad=False)
                        twins[id(tensor)] = twin
                    table[name] = twin  # type: ignore[assignment]
        yield
    finally:
        torch.compiler._is_exporting_flag = exporting
        for table, original in held:
            table.clear()
            table.update(original)  # type: ignore[arg-type]


def to_device(value: Any, device: str) -> Any:
    """A tree with its tensors on another device; tensors that come from `meta` are zeros there."""
    register_known_caches()
    register_objects_in(value)

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.device.type == device:
            return leaf
        return torch.zeros_like(leaf, device=device) if leaf.device.type == "meta" else leaf.to(device)

    return pytree.tree_map(move, value)
