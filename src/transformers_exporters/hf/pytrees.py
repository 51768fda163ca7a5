"""Teach torch's pytrees the objects that models take and return: caches, their layers, and anything alike.

`torch.export` needs every input and output to be a tree of tensors. A cache is flattened by its attributes: those that
hold tensors become children (named, so that a leaf has the path `cache.layers.0.keys`), plain values become the node's
context, and what follows from the tensors (lengths, head counts, dtype, device) is left out and derived again, so that
one graph serves caches of every size.
"""

from __future__ import annotations

import enum
import functools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..artifact.spec import Json
from .plain_values import PLAIN, NotPlain, class_path, decode, encode

logger = logging.getLogger(__name__)

#: The names of the argument that holds what was computed for earlier tokens.
CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")

# Never part of a node's identity, and set by nobody: what `steps` lets travel with a cache.
_TRAVELLING = frozenset({"module_state"})


@functools.cache
def computed_attributes(cls: type) -> frozenset[str]:
    """The attributes of a class that follow from its tensors, or that no graph reads; `_derive` sets them again."""
    from transformers import cache_utils as caches

    table: tuple[tuple[Any, tuple[str, ...]], ...] = (
        (caches.EncoderDecoderCache, ("is_updated",)),
        (caches.Cache, ("offloading", "only_non_sliding", "prefetch_stream")),
        (caches.CacheLayerMixin | caches.LinearAttentionCacheLayerMixin | caches.DummyLayer, ("device", "dtype")),
        (caches.LinearAttentionCacheLayerMixin, ("conv_kernel_size", "record_past")),
        (caches.DynamicSlidingWindowLayer, ("_sliding_window_tensor", "cumulative_length", "record_past")),
        (caches.StaticLayer, ("batch_size", "num_heads", "max_cache_len", "k_head_dim", "v_head_dim")),
        (caches.StaticSlidingWindowLayer, ("cumulative_length_int", "_is_croppable")),
        (caches.DynamicIndexedLayer | caches.StaticIndexedLayer, ("indexer_device", "indexer_dtype")),
    )
    names = {name for bases, own in table if issubclass(cls, bases) for name in own}
    if cls is caches.DynamicCache:
        names.add("layer_class_to_replicate")
    return _TRAVELLING | names


def is_registered(cls: type) -> bool:
    """Whether torch's pytrees know the class."""
    return cls in pytree.SUPPORTED_NODES


def register_pytree_node(cls: type) -> None:
    """Let `torch.export` take, return, save and load objects of `cls`.

    For a cache class, its layer classes are registered with it. Registering twice is harmless.

    Args:
        cls: A `transformers` cache (`StaticCache`, `DynamicCache`, ...) or any class whose instances keep their
            tensors in attributes.
    """
    from transformers import cache_utils

    related: list[type] = [cls]
    if issubclass(cls, cache_utils.Cache):
        bases = (cache_utils.CacheLayerMixin, cache_utils.LinearAttentionCacheLayerMixin, cache_utils.DummyLayer)
        related += [layer for base in bases for layer in _subclasses(base)]
    for item in related:
        if not is_registered(item):
            pytree.register_pytree_node(
                item,
                flatten,
                functools.partial(unflatten, item),
                serialized_type_name=class_path(item),
                flatten_with_keys_fn=_flatten_with_keys,
                to_dumpable_context=lambda context: context,
                from_dumpable_context=lambda context: context,
            )


def register_known_caches() -> None:
    """Register every cache and layer class that is loaded now, those of modelling files included."""
    from transformers import cache_utils

    for cls in _subclasses(cache_utils.Cache):
        register_pytree_node(cls)


def growing_layers() -> list[type]:
    """The layer classes that a cache may name without holding one: those that it adds to itself while it grows."""
    from transformers import cache_utils

    return [cache_utils.DynamicLayer, cache_utils.StaticLayer]


def register_objects_in(value: Any, *, empty: bool = False) -> None:
    """Register the classes of all objects inside `value` that hold tensors and that pytrees do not know yet.

    Args:
        value: Inputs or outputs, nested.
        empty: Objects without tensors as well, such as a cache that allocates at its first use: `torch.export` takes no
            input that is neither a tensor, nor plain, nor a tree.
    """
    if isinstance(value, (torch.Tensor, torch.SymInt, *PLAIN)):
        return
    if is_registered(type(value)):
        for child in pytree.tree_flatten(value, is_leaf=lambda item: item is not value)[0]:
            register_objects_in(child, empty=empty)
    elif is_plain_object(value) and (holds_tensors(value) or (empty and not callable(value))):
        register_pytree_node(type(value))
        register_objects_in(value, empty=empty)


def is_plain_object(value: Any) -> bool:
    """Whether a value is known by its attributes alone."""
    return hasattr(value, "__dict__") and not isinstance(value, type | enum.Enum)


def _subclasses(cls: type) -> Iterator[type]:
    yield cls
    child: type
    for child in type.__subclasses__(cls):
        yield from _subclasses(child)


def copy_tensors(source: Any, target: Any) -> None:
    """Copy the tensors of one object into those of another of the same structure, where they are not the same memory."""
    for new, old in zip(pytree.tree_leaves(source), pytree.tree_leaves(target), strict=True):
        if isinstance(old, torch.Tensor) and new.data_ptr() != old.data_ptr():
            old.copy_(new)


def holds_tensors(value: Any, depth: int = 0) -> bool:
    """Whether there is a tensor or a symbolic number anywhere inside, or a part of a cache that may come to hold one."""
    if isinstance(value, torch.Tensor | torch.SymInt):
        return True
    if depth > 6 or isinstance(value, (*PLAIN, type)):
        return False
    if isinstance(value, dict):
        return any(holds_tensors(item, depth + 1) for item in value.values())
    if isinstance(value, list | tuple):
        return any(holds_tensors(item, depth + 1) for item in value)
    return _is_cache_part(value) or any(holds_tensors(item, depth + 1) for item in vars_of(value).values())


def _is_cache_part(value: Any) -> bool:
    from transformers import cache_utils

    return isinstance(
        value,
        cache_utils.Cache
        | cache_utils.CacheLayerMixin
        | cache_utils.LinearAttentionCacheLayerMixin
        | cache_utils.DummyLayer,
    )


def vars_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, or nothing if it keeps none."""
    return getattr(value, "__dict__", {})


def _parts(value: Any) -> tuple[list[str], list[Any], str]:
    kind: Any = type(value)
    derived = computed_attributes(kind)
    names, children, attributes = [], [], {}
    for name, item in vars(value).items():
        if name in derived:
            continue
        if holds_tensors(item) or (name == "layers" and isinstance(item, list)):
            names.append(name)
            children.append(item)
            continue
        try:
            attributes[name] = encode(item)
        except NotPlain as error:
            logger.debug("%s.%s does not reach the graph: %s", type(value).__name__, name, error)
    return names, children, json.dumps({"children": names, "attributes": attributes}, sort_keys=True)


def flatten(value: Any) -> tuple[list[Any], str]:
    """An object's tensor-holding attributes, and the rest as a JSON string."""
    _, children, context = _parts(value)
    return children, context


def _flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], str]:
    names, children, context = _parts(value)
    return [(pytree.GetAttrKey(name), child) for name, child in zip(names, children, strict=True)], context


def unflatten(cls: type, children: Iterable[Any], context: Json) -> Any:
    """Rebuild an object from its children and the JSON string that `flatten` gave."""
    described = json.loads(context)
    return build(cls, dict(zip(described["children"], children, strict=True)), described["attributes"])


def build(cls: type, children: Mapping[str, Any], attributes: Mapping[str, Json]) -> Any:
    """An object of the class with these children and encoded attributes, and with what follows from them."""
    value = cls.__new__(cls)  # type: ignore[call-overload]
    vars(value).update({name: decode(item) for name, item in attributes.items()} | dict(children))
    _derive(value)
    return value


def _derive(value: Any) -> None:
    """Set again what `computed_attributes` left out."""
    from transformers import cache_utils

    attributes = vars(value)
    if isinstance(value, cache_utils.EncoderDecoderCache):
        value.is_updated = {
            index: getattr(layer, "keys", None) is not None
            for index, layer in enumerate(value.cross_attention_cache.layers)
        }
        return
    if isinstance(value, cache_utils.Cache):
        value.offloading = False
        if type(value) is cache_utils.DynamicCache:
            plain = all(type(layer) is cache_utils.DynamicLayer for layer in value.layers)
            value.layer_class_to_replicate = cache_utils.DynamicLayer if plain else None
        return
    if not _is_cache_part(value):
        return
    first = next((item for item in pytree.tree_leaves(list(attributes.values())) if _is_array(item)), None)
    keys, values = attributes.get("keys"), attributes.get("values")
    if first is not None:
        value.device, value.dtype = first.device, first.dtype
    if isinstance(value, cache_utils.LinearAttentionCacheLayerMixin):
        value.record_past = False
        states = value.conv_states
        value.conv_kernel_size = {index: item.shape[-1] if _is_array(item) else None for index, item in states.items()}
    if isinstance(value, cache_utils.DynamicSlidingWindowLayer):
        value.record_past = False
        value._sliding_window_tensor = torch.tensor(value.sliding_window, dtype=torch.long)
        value.cumulative_length = keys.shape[-2] if _is_array(keys) and keys.dim() > 1 else 0  # [0]: nothing yet
    if isinstance(value, cache_utils.StaticLayer) and _is_array(keys) and _is_array(values):
        value.batch_size, value.num_heads, value.max_cache_len, value.k_head_dim = keys.shape
        value.v_head_dim = values.shape[-1]
        if isinstance(value, cache_utils.StaticSlidingWindowLayer):
            value.cumulative_length_int, value._is_croppable = 0, False
    if isinstance(value, cache_utils.DynamicIndexedLayer | cache_utils.StaticIndexedLayer):
        value.indexer_device, value.indexer_dtype = attributes.get("device"), attributes.get("dtype")


def _is_array(item: Any) -> bool:
    return isinstance(item, torch.Tensor)
