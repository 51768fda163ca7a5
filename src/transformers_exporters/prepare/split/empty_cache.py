"""Leave an empty cache out of a component's inputs, where the module makes the same one by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree

from ...hf.pytrees import register_known_caches, register_objects_in
from ..shapes_only import run_forward


def without_empty_cache(module: torch.nn.Module, call: Mapping[str, Any], cache_name: str | None) -> dict[str, Any]:
    """`call` without its cache if that holds nothing yet and the outputs stay the same in number."""
    cache = call.get(cache_name) if cache_name else None
    if cache is None or _tensors(cache):
        return dict(call)
    shorter = {name: value for name, value in call.items() if name != cache_name}
    with torch.no_grad():
        before = run_forward(module, call)
        try:
            after = run_forward(module, shorter)
        except Exception:  # noqa: BLE001 - whatever the module raises without a cache: it needs one
            return dict(call)
    return shorter if len(_tensors(before)) == len(_tensors(after)) else dict(call)


def _tensors(value: Any) -> list[Any]:
    register_known_caches()
    register_objects_in(value)
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
