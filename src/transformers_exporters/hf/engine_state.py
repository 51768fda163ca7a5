"""The cache of a stateful graph, which the engine keeps from call to call, as `generate` and a caller see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from ..artifact.spec import ComponentSpec, TensorSpec
from ..errors import InputError
from ..runtime.assumed import check_assumed
from ..runtime.feeds import check_feeds
from ..runtime.load import flatten_feeds
from ..runtime.torch_arrays import to_numpy, to_torch
from .pytrees import register_known_caches

if TYPE_CHECKING:
    from .exported import ExportedComponent

__all__ = ["EngineCache", "call_stateful", "is_stateful", "run_stateful", "with_state"]

_TOKENS = ("input_ids", "inputs_embeds", "decoder_input_ids", "decoder_inputs_embeds")


class EngineCache:
    """Stands for the state inside a session after one call. It holds no tensors and is good for the next call only.

    Attributes:
        length: Positions seen so far.
        batch: Rows.
        rows: int64 [batch of the next call]: which row of the state each row continues; None for its own.
    """

    is_compileable = False

    def __init__(self, length: int, batch: int) -> None:
        self.length, self.batch = length, batch
        self.rows: torch.Tensor | None = None

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Positions seen so far."""
        return self.length

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Let row i of the next call continue row `beam_idx[i]`."""
        self.rows = beam_idx if self.rows is None else self.rows[beam_idx]

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """The same as `reorder_cache`."""
        self.reorder_cache(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Continue every row `repeats` times."""
        self.reorder_cache(torch.arange(self.batch).repeat_interleave(repeats))

    def crop(self, max_length: int) -> None:
        """Raises `InputError`: an engine's state cannot be rolled back."""
        raise InputError("A stateful graph cannot forget tokens; export with stateful=False for assisted generation.")


def is_stateful(spec: ComponentSpec) -> bool:
    """Whether the engine keeps this component's cache."""
    return "stateful" in spec.options


def call_stateful(component: ExportedComponent, inputs: Mapping[str, Any]) -> Any:
    """Run a stateful component.

    Args:
        component: The component.
        inputs: Its inputs. The cache argument may be left out (go on from the last call), empty (start anew), filled (a
            cache from `prefill` or from eager: start from it) or what the last call returned (go on).

    Returns:
        What the source module returns, with an `EngineCache` where it returns a cache.

    Raises:
        InputError: If the cache is the result of a call before the last one.
    """
    tensors = run_stateful(component, inputs)
    result = component.outputs(tensors)
    result[component.spec.options["stateful"]["field"]] = component.state
    return result


def run_stateful(component: ExportedComponent, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The same as `call_stateful`; outputs by name, without the cache."""
    known = component.spec.options["stateful"]
    session: Any = component.session
    given = dict(inputs)
    names = dict.fromkeys(name.partition(".")[0] for name in known["variables"])
    caches = {name: given.pop(name) for name in names if given.get(name) is not None}
    before = _enter(component, session, caches)
    feeds = component.feeds(given)
    arrays = {name: to_numpy(torch.as_tensor(value)) for name, value in feeds.items()}
    rows = None if before.rows is None else before.rows.numpy()
    outputs = session.run(arrays, beam_idx=rows)
    check_assumed(component.spec, outputs)
    tokens = next(feeds[name] for name in (*_TOKENS, *feeds) if name in feeds)
    component.state = EngineCache(before.length + int(tokens.shape[1]), int(tokens.shape[0]))
    return {name: to_torch(value) for name, value in outputs.items()}


def _enter(component: ExportedComponent, session: Any, caches: Mapping[str, Any]) -> EngineCache:
    """Bring the session to the state that the caller means; returns what stands for it."""
    held: EngineCache = component.state or EngineCache(0, 0)
    if not caches:
        return held
    cache = next(iter(caches.values()))
    if isinstance(cache, EngineCache):
        if cache is not held:
            raise InputError(f"{component.spec.name!r} has moved on since it returned this cache; pass the last one.")
        return cache
    if getattr(cache, "is_compileable", False):
        raise InputError("A stateful graph keeps its own cache; export with stateful=False to use a static one.")
    session.reset()
    register_known_caches()
    if not pytree.tree_leaves(cache):
        return EngineCache(0, 0)
    state = _state_spec(component.spec)
    checked = check_feeds(state, flatten_feeds(state, caches))
    session.set_state({name: to_numpy(torch.as_tensor(value)) for name, value in checked.items()})
    length = cache.get_seq_length() if hasattr(cache, "get_seq_length") else 0
    return EngineCache(int(length), 0)


def with_state(spec: ComponentSpec) -> ComponentSpec:
    """The border with the state among its inputs again; a border without state as it is."""
    if not is_stateful(spec):
        return spec
    return dataclasses.replace(spec, inputs=(*spec.inputs, *_state_spec(spec).inputs))


def _state_spec(spec: ComponentSpec) -> ComponentSpec:
    """The border of the state alone."""
    known = spec.options["stateful"]
    tensors = tuple(
        TensorSpec(name, name, tensor["dtype"], tuple(tensor["shape"])) for name, tensor in known["variables"].items()
    )
    return dataclasses.replace(spec, inputs=tensors, input_structure=known["structure"])
